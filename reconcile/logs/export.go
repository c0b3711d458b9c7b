package logs

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"io"

	"quittance/ledger"
	"quittance/ledger/logfiles"
	"quittance/reconcile/logfile"
)

// Export writes every effect of an account, or of one of its runs, as lines of the
// format that Import reads: an intent for each attempt, and how it ended. What an agent
// must not see yet is left out, as in an answer to it.
func Export(ctx context.Context, db *ledger.DB, account int64, run string, out io.Writer) (effects int, err error) {
	w := bufio.NewWriterSize(out, 256<<10)
	err = logfiles.Export(ctx, db, account, run, func(x *logfiles.Exported) error {
		effects++
		return export(x, w)
	})
	if err != nil {
		return effects, err
	}
	return effects, w.Flush()
}

func export(x *logfiles.Exported, w io.Writer) error {
	base := logfile.Entry{Run: x.RunID, Key: hex.EncodeToString(x.Key), Tool: x.Tool}
	put := func(e logfile.Entry) error {
		line, err := e.Line()
		if err == nil {
			_, err = w.Write(line)
		}
		return err
	}
	for i, at := range x.Begun {
		if i > 0 { // an attempt after the first was let run
			again := base
			again.Type, again.At, again.Verdict, again.Attempt = logfile.Resolved, at, logfile.NotTaken, i+1
			if err := put(again); err != nil {
				return err
			}
		}
		intent := base
		intent.Type, intent.At, intent.Arguments, intent.Occurrence, intent.Attempt = logfile.Intent, at, json.RawMessage(x.Arguments), x.Occurrence, i+1
		if err := put(intent); err != nil {
			return err
		}
	}
	end := base
	end.At, end.Reference, end.By = logfile.Stamp(x.ChangedAt.Time), x.Reference, x.DecidedBy
	if x.Result != "" {
		end.Result = json.RawMessage(x.Result)
	}
	if x.Error != "" {
		end.Error = json.RawMessage(x.Error)
	}
	byAgent := x.DecidedBy == "agent" || x.DecidedBy == "late_agent"
	switch {
	case !x.Released:
		return nil
	case x.State == "taken" && byAgent:
		end.Type = logfile.Completed
	case x.State == "failed":
		end.Type = logfile.Failed
	case x.State == "taken":
		end.Type, end.Verdict = logfile.Resolved, logfile.Taken
	case x.State == "cancelled":
		end.Type, end.Verdict = logfile.Resolved, logfile.Stop
	case x.State == "cleared":
		end.Type, end.Verdict, end.Attempt = logfile.Resolved, logfile.NotTaken, len(x.Begun)+1
	default:
		return nil
	}
	return put(end)
}
