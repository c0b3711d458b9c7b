package client

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// LogFiles are the log files that agents keep and that are read.
type LogFiles struct {
	LogFiles []LogFile `json:"log_files"`
}

// LogFile is one of them.
type LogFile struct {
	LogFileID int64         `json:"log_file_id"`
	Account   string        `json:"account"`
	Path      string        `json:"path" doc:"On the machine where it is read."`
	Lines     int64         `json:"lines"`
	Damaged   int64         `json:"damaged" doc:"Places in quarantine."`
	Waiting   int64         `json:"waiting" doc:"Outcomes without an intent."`
	Pending   int64         `json:"pending" doc:"Decisions that wait to be written to it."`
	ReadAt    *time.Time    `json:"read_at,omitempty"`
	Alarm     *LogFileAlarm `json:"alarm,omitempty" doc:"It does not hold what was read from it: nothing is read, released or written until an administrator acknowledges that."`
}

// LogFileAlarm says how a log file was changed.
type LogFileAlarm struct {
	Kind    string    `json:"kind" enum:"shrunken,replaced,rewritten,removed"`
	Detail  string    `json:"detail"`
	FoundAt time.Time `json:"found_at"`
}

// LogFileNote acknowledges that a log file was changed.
type LogFileNote struct {
	Note string `json:"note" doc:"What happened to the file."`
}

// CloseLogFileRun says that a run in a log file has ended.
type CloseLogFileRun struct {
	RunID   string `json:"run_id,omitempty" doc:"The run; without it that of the lines which name none."`
	Outcome string `json:"outcome" enum:"finished,failed,cancelled"`
	Note    string `json:"note,omitempty"`
}

// LogFiles lists the log files that are read; for a person's token, as those below.
func (c *Client) LogFiles(ctx context.Context) ([]LogFile, error) {
	out, err := ask[LogFiles](ctx, c, request{method: http.MethodGet, path: "/v1/logfiles"})
	return out.LogFiles, err
}

// AcknowledgeLogFile says what happened to a log file that was changed.
func (c *Client) AcknowledgeLogFile(ctx context.Context, id int64, note string) (LogFile, error) {
	return ask[LogFile](ctx, c, request{method: http.MethodPost, path: logFilePath(id) + "/acknowledge", in: LogFileNote{note}})
}

// CloseLogFileRun ends a run that lives in a log file.
func (c *Client) CloseLogFileRun(ctx context.Context, id int64, in CloseLogFileRun) (LogFile, error) {
	return ask[LogFile](ctx, c, request{method: http.MethodPost, path: logFilePath(id) + "/close", in: in})
}

func logFilePath(id int64) string { return "/v1/logfiles/" + strconv.FormatInt(id, 10) }
