package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"quittance/client"
)

// logActFlags name a log file to a server: what people say of it goes over the API, under
// their own token, so that it is known who said it.
type logActFlags struct {
	File    string `arg:"" help:"The log file, as it was named to log import or log follow." type:"path"`
	Account string `help:"The account whose log it is; needed where several read the file." placeholder:"NAME"`
	Note    string `help:"What happened." placeholder:"TEXT"`
}

type logAcknowledgeCmd struct{ logActFlags }

// Run acknowledges the file's alarm.
func (c *logAcknowledgeCmd) Run(ctx context.Context, out output) error {
	if strings.TrimSpace(c.Note) == "" {
		return usagef("--note says what happened to the file")
	}
	return c.act(ctx, func(api *client.Client, f client.LogFile) error {
		if f.Alarm == nil {
			return fmt.Errorf("%s: there is no alarm to acknowledge", f.Path)
		}
		if _, err := api.AcknowledgeLogFile(ctx, f.LogFileID, c.Note); err != nil {
			return err
		}
		_, err := fmt.Fprintf(out, "%s: acknowledged that it was %s. Everything open in its runs counts as not known; it is read from its beginning.\n", f.Path, f.Alarm.Kind)
		return err
	})
}

type logCloseCmd struct {
	logActFlags
	OneRun  string `name:"run" help:"The run; that of lines which name none when absent." placeholder:"ID"`
	Outcome string `help:"finished, failed or cancelled." enum:"finished,failed,cancelled" default:"finished"`
}

// Run closes one run.
func (c *logCloseCmd) Run(ctx context.Context, out output) error {
	return c.act(ctx, func(api *client.Client, f client.LogFile) error {
		if _, err := api.CloseLogFileRun(ctx, f.LogFileID, client.CloseLogFileRun{RunID: c.OneRun, Outcome: c.Outcome, Note: c.Note}); err != nil {
			return err
		}
		_, err := fmt.Fprintf(out, "%s: the run is %s.\n", f.Path, c.Outcome)
		return err
	})
}

// act finds the file on the server and does f.
func (c *logActFlags) act(ctx context.Context, f func(*client.Client, client.LogFile) error) error {
	url, token := os.Getenv(client.EnvURL), os.Getenv(client.EnvToken)
	if token == "" {
		return usagef("QUITTANCE_TOKEN is not set: your own token, from quittance token new --person NUMBER")
	}
	if url == "" {
		url = defaultURL
	}
	api := client.New(url, token)
	defer api.Close()
	list, err := api.LogFiles(ctx)
	if err != nil {
		return err
	}
	var found []client.LogFile
	for _, x := range list {
		if x.Path == c.File && (c.Account == "" || x.Account == c.Account) {
			found = append(found, x)
		}
	}
	switch len(found) {
	case 0:
		return fmt.Errorf("%s: the server knows no such log file", c.File)
	case 1:
		return f(api, found[0])
	}
	return usagef("%s is read for %d accounts: say --account", c.File, len(found))
}
