package desk_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"quittance/reconcile/logfile"
	"quittance/reconcile/logs"
)

// changedFile is a log file with an open alarm.
func (w *world) changedFile(path string) int64 {
	w.t.Helper()
	id, err := w.engine.OpenLog(w.t.Context(), w.account, path, "ap-bot", "run-file")
	if err == nil {
		err = w.engine.AlarmLog(w.t.Context(), id, &logfile.Alarm{Kind: "shrunken", Detail: "900 bytes were read from it, and it has 20"})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

// readFile is a log file of one run that was read, and then changed.
func (w *world) readFile() int64 {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "effects.jsonl")
	lines := `{"type":"intent","key":"K-1","tool":"send_mail"}` + "\n" + `{"type":"completed","key":"K-1"}` + "\n"
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		w.t.Fatal(err)
	}
	r, err := logs.Open(w.t.Context(), w.engine, w.db, slog.New(slog.DiscardHandler), logs.Options{Account: w.account, Path: path, Agent: "ap-bot", Run: "run-file"})
	if err != nil {
		w.t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Import(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return w.changedFile(path)
}

func TestAChangedLogFileIsSaidEverywhereUntilItIsAcknowledged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, petra := w.signedIn("ada"), w.signedIn("petra")
	const banner = "The log file /var/agent/effects.jsonl was changed. Nothing from it is released"
	if page := petra.get("/").body; strings.Contains(page, "was changed") {
		t.Fatal("said before it is so")
	}
	id := w.changedFile("/var/agent/effects.jsonl")
	for _, path := range []string{"/", "/decided", "/runs", "/health"} {
		if page := petra.get(path).body; !strings.Contains(page, banner) {
			t.Errorf("%s does not say it", path)
		}
	}
	health := petra.get("/health").body
	for _, want := range []string{"A log file was shrunken", "900 bytes were read from it, and it has 20", "An admin acts on this.", "Changed"} {
		if !strings.Contains(health, want) {
			t.Errorf("the health page lacks %q", want)
		}
	}
	form := url.Values{"form": {ada.get("/health").token(t, "/health/file/acknowledge")}, "file": {fmt.Sprint(id)}, "note": {"restored by hand"}}
	if a := petra.send("/health/file/acknowledge", form); a.status != http.StatusForbidden {
		t.Errorf("an operator: %d", a.status)
	}
	form.Set("form", ada.get("/health").token(t, "/health/file/acknowledge"))
	if a := ada.send("/health/file/acknowledge", form); a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if page := petra.get("/").body; strings.Contains(page, "was changed") {
		t.Error("still said")
	}
	if trail := ada.get("/audit").body; !strings.Contains(trail, "logfile.acknowledge") || !strings.Contains(trail, "restored by hand") {
		t.Error("the trail does not say who and why")
	}
	form.Set("form", ada.get("/").token(t, "/sign-out"))
	if a := ada.send("/health/file/acknowledge", form); a.status != http.StatusConflict && a.status != http.StatusForbidden {
		t.Errorf("acknowledged twice: %d", a.status)
	}
}
