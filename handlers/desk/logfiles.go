package desk

import (
	"fmt"
	"strconv"
	"strings"

	"quittance/reconcile/effects"
	"quittance/views"
)

// logLine says how a log file stands that an agent keeps.
func logLine(r *request, f effects.LogState) views.HealthLine {
	l := views.HealthLine{Name: "Log file", State: views.State{Kind: "ok", Word: "Clean"}}
	text := []string{fmt.Sprintf("%s, account %s: %s lines read.", f.Path, f.Account, grouped(f.Lines))}
	if !f.ReadAt.IsZero() {
		text = append(text, "Last read "+r.at(f.ReadAt).Text+".")
	}
	note := func(kind, word, words string) {
		l.State = views.State{Kind: kind, Word: word}
		text = append(text, words)
	}
	if f.Waiting > 0 {
		note("unknown", "Not clean", grouped(f.Waiting)+" outcomes have no intent in it.")
	}
	if f.Damaged > 0 {
		note("unknown", "Not clean", grouped(f.Damaged)+" damaged places are in quarantine; what they may have meant is in the queue.")
	}
	if f.Pending > 0 {
		text = append(text, grouped(f.Pending)+" decisions wait to be written to it.")
	}
	if f.Alarm != nil {
		note("danger", "Changed", "It was "+f.Alarm.Kind+".")
	}
	l.Text = strings.Join(text, " ")
	return l
}

// logForm acknowledges that a log file was changed.
func logForm(r *request, f effects.LogState, problem string) views.GapForm {
	id := strconv.FormatInt(f.ID, 10)
	return views.GapForm{
		ID: "file-" + id, File: id, Title: "A log file was " + f.Alarm.Kind, Question: "What happened to the file?",
		Text: fmt.Sprintf("%s of account %s (%s): %s. Found %s. Nothing is read from it, released from its runs or written to it. "+
			"Acknowledging makes everything open in its runs not known, and the file is read from its beginning; what is known counts no second time.",
			f.Path, f.Account, f.Alarm.Kind, f.Alarm.Detail, r.at(f.Alarm.FoundAt).Text),
		Action: "/health/file/acknowledge", Button: "Acknowledge: treat everything open of this file as not known",
		Token: r.session.FormToken(), Problem: problem, CanAct: r.may(admin),
	}
}

func (d *Desk) acknowledgeFile(r *request) error {
	return d.onGap(r, func(note string) error {
		return d.engine.AcknowledgeLog(r.ctx(), r.person(), r.form.Whole("file"), note)
	})
}

// alarms says in the banner of each page which log files were changed.
func (d *Desk) alarms(r *request) (string, error) {
	paths, err := d.engine.AlarmedLogs(r.ctx())
	if err != nil || len(paths) == 0 {
		return "", err
	}
	text := "The log file " + paths[0] + " was changed"
	if n := len(paths) - 1; n > 0 {
		text = fmt.Sprintf("The log file %s and %d more were changed", paths[0], n)
	}
	return text + ". Nothing from it is released until an admin acknowledges that under Health.", nil
}
