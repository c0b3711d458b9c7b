package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"quittance/client"
	"quittance/reconcile/effects"
	"quittance/web"
)

// logFiles lists the log files that agents keep, those with an alarm first.
func (a *API) logFiles(c echo.Context, _ identity) error {
	list, err := a.engine.Logs(c.Request().Context())
	if err != nil {
		return err
	}
	out := client.LogFiles{LogFiles: make([]client.LogFile, len(list))}
	for i, f := range list {
		out.LogFiles[i] = logFileWire(f)
	}
	return web.JSON(c, http.StatusOK, out)
}

func (a *API) acknowledgeFile(c echo.Context, who identity) error {
	in, err := web.Decode[client.LogFileNote](c)
	if err != nil {
		return err
	}
	id, err := logFileID(c)
	if err != nil {
		return err
	}
	if err := a.engine.AcknowledgeLog(c.Request().Context(), who.person(), id, in.Note); err != nil {
		return a.refused(err)
	}
	return a.logFile(c, id)
}

func (a *API) closeFileRun(c echo.Context, who identity) error {
	in, err := web.Decode[client.CloseLogFileRun](c)
	if err != nil {
		return err
	}
	id, err := logFileID(c)
	if err != nil {
		return err
	}
	if err := a.engine.CloseLogRun(c.Request().Context(), id, in.RunID, in.Outcome); err != nil {
		return a.refused(err)
	}
	row := madeOverAPI(c, who, "logfile.close", "logfile:"+strconv.FormatInt(id, 10))
	row.Note = in.Note
	after, err := json.Marshal(map[string]string{"run": in.RunID, "outcome": in.Outcome})
	if err != nil {
		return err
	}
	row.After = string(after)
	if err := a.access.Record(context.WithoutCancel(c.Request().Context()), row); err != nil {
		return err
	}
	return a.logFile(c, id)
}

func (a *API) logFile(c echo.Context, id int64) error {
	list, err := a.engine.Logs(c.Request().Context())
	if err != nil {
		return err
	}
	for _, f := range list {
		if f.ID == id {
			return web.JSON(c, http.StatusOK, logFileWire(f))
		}
	}
	return noLogFile()
}

func noLogFile() error {
	return &web.Problem{Status: http.StatusNotFound, Code: "not_found", Detail: "There is no such log file."}
}

func logFileID(c echo.Context) (int64, error) {
	text, err := web.Param(c, "log_file_id")
	if err != nil {
		return 0, err
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, noLogFile()
	}
	return id, nil
}

func logFileWire(f effects.LogState) client.LogFile {
	out := client.LogFile{LogFileID: f.ID, Account: f.Account, Path: f.Path, Lines: f.Lines, Damaged: f.Damaged, Waiting: f.Waiting, Pending: f.Pending, ReadAt: momentOrNil(f.ReadAt)}
	if f.Alarm != nil {
		out.Alarm = &client.LogFileAlarm{Kind: f.Alarm.Kind, Detail: f.Alarm.Detail, FoundAt: moment(f.Alarm.FoundAt)}
	}
	return out
}
