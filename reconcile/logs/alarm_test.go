package logs

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"quittance/reconcile/effects"
)

// A file that no longer holds what was read is an alarm: nothing is read, released or
// appended until a person has acknowledged it; then what it may have lost is unknown.
func TestAChangedFileIsAnAlarm(t *testing.T) {
	t.Parallel()
	for kind, change := range map[string]func(w *world, path, text string){
		"shrunken": func(w *world, path, text string) {
			if err := os.Truncate(path, int64(len(text)/2)); err != nil {
				w.t.Fatal(err)
			}
		},
		"replaced": func(w *world, path, text string) {
			w.put(path+"~new", strings.Replace(text, "ACME", "EVIL", 1))
			if err := os.Rename(path+"~new", path); err != nil {
				w.t.Fatal(err)
			}
		},
		"rewritten": func(w *world, path, text string) { w.put(path, strings.Replace(text, "ACME", "EVIL", 1)) },
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorldWith(t, strings.Replace(rules, "hold: 0s", "hold: 1h", 1))
			path := w.file("effects.jsonl", intent("K-1"), intent("K-2"), completed("K-2"), intent("K-3"), intent("K-4"))
			r := w.reader(path)
			w.round(r)
			w.imports(path)
			w.passMoment()
			w.round(r)
			for _, key := range []string{"K-1", "K-3"} {
				w.decide(key, effects.VerdictTaken)
			}
			w.decide("K-4", effects.VerdictNotTaken)
			change(w, path, w.read(path))
			changed := w.read(path)
			if err := r.Round(t.Context(), func(effects.LogReport) {}); !errors.Is(err, effects.ErrLogAlarm) {
				t.Fatalf("followed: %v", err)
			}
			if _, err := w.tryImport(path); !errors.Is(err, effects.ErrLogAlarm) {
				t.Fatalf("imported: %v", err)
			}
			if s := w.state(path); s.Alarm == nil || s.Alarm.Kind != kind {
				t.Fatalf("%+v", s.Alarm)
			}
			// Nothing is released: not by the loops, not by a line.
			w.exec(`UPDATE effects SET release_at = clock_timestamp() - interval '1 second' WHERE client_key = 'K-3'`)
			last := w.LastLoop()
			w.loops(func() bool { return w.LastLoop().After(last) })
			if w.count(`SELECT count(*) FROM effects WHERE client_key = 'K-3' AND released`) != 0 {
				t.Error("released during the alarm")
			}
			if err := w.CarryLog(t.Context(), r.id); err != nil && !errors.Is(err, effects.ErrLogAlarm) {
				t.Fatal(err)
			}
			if w.read(path) != changed {
				t.Error("appended during the alarm")
			}
			if err := w.AcknowledgeLog(t.Context(), w.person, r.id, " "); err == nil {
				t.Error("acknowledged without a word")
			}
			if err := w.AcknowledgeLog(t.Context(), w.person, r.id, "restored by hand"); err != nil {
				t.Fatal(err)
			}
			if n := w.count(`SELECT count(*) FROM audit WHERE action = 'logfile.acknowledge' AND actor = 'Petra' AND note = 'restored by hand' AND before LIKE '%' || $1 || '%'`, kind); n != 1 {
				t.Errorf("%d lines in the trail", n)
			}
			if x := w.want("K-4", "interrupted"); x.Why != "log_gap" {
				t.Errorf("the permission is not withdrawn: %+v", x)
			}
			w.want("K-2", "taken")
			w.want("K-1", "taken")
			w.round(r)
			w.round(r)
			if s := w.state(path); s.Alarm != nil {
				t.Error("it is an alarm again")
			}
			if err := w.AcknowledgeLog(t.Context(), w.person, r.id, "twice"); err == nil {
				t.Error("acknowledged twice")
			}
		})
	}
}

// A final line that a changed file lost is appended again; one that it still has is not.
func TestFinalLinesThatWereLostAreAppendedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path, r := w.decidedFile("effects.jsonl")
	w.round(r)
	if n := len(resolvedLines(t, w.read(path), "K-1")); n != 1 {
		t.Fatalf("%d lines", n)
	}
	for _, text := range []string{"\n" + intent("K-1") + "\n", "\n\n" + w.read(path)} { // without it, and with it
		_ = r.Close()
		w.put(path, text)
		if err := r.Round(t.Context(), func(effects.LogReport) {}); !errors.Is(err, effects.ErrLogAlarm) {
			t.Fatal(err)
		}
		if err := w.AcknowledgeLog(t.Context(), w.person, r.id, "edited"); err != nil {
			t.Fatal(err)
		}
		before := w.rows()
		w.round(r)
		w.round(r)
		if n := len(resolvedLines(t, w.read(path), "K-1")); n != 1 {
			t.Errorf("%d lines in\n%s", n, w.read(path))
		}
		if !slices.Equal(before, w.rows()) {
			t.Error("reading it again changed something")
		}
	}
}

func TestRotation(t *testing.T) {
	t.Parallel()
	for name, rotate := range map[string]func(w *world, path string) error{
		"renamed": func(w *world, path string) error { return os.Rename(path, path+".1") },
		"copied and cut": func(w *world, path string) error {
			w.put(path+".1", w.read(path))
			return os.Truncate(path, 0)
		},
		"renamed with a date": func(w *world, path string) error {
			return os.Rename(path, strings.TrimSuffix(path, ".jsonl")+"-20260102.jsonl")
		},
	} {
		for _, how := range []string{"followed", "restarted"} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				keyless := `{"type":"intent","tool":"note"}` + "\n" + `{"type":"completed","tool":"note"}`
				path := w.file("effects.jsonl", intent("K-1"), keyless)
				r := w.reader(path)
				w.round(r)
				w.add(path, completed("K-1")+"\n"+intent("K-2")+"\n") // not read before it is rotated
				if err := rotate(w, path); err != nil {
					t.Fatal(err)
				}
				if how == "restarted" {
					_ = r.Close()
					r = w.reader(path)
				}
				w.round(r)
				w.want("K-1", "taken")
				w.add(path, keyless+"\n"+completed("K-2")+"\n")
				w.round(r)
				w.want("K-2", "taken")
				if n := w.count(`SELECT count(*) FROM effects WHERE tool = 'note' AND state = 'taken'`); n != 2 {
					t.Errorf("%d calls without a key", n)
				}
				if s := w.state(path); s.Alarm != nil || s.Damaged != 0 || s.Waiting != 0 {
					t.Errorf("%+v", s)
				}
				// What is decided goes to the file that is there now.
				w.add(path, intent("K-3")+"\n")
				w.round(r)
				w.imports(path)
				w.passMoment()
				w.decide("K-3", effects.VerdictTaken)
				w.round(r)
				w.round(r)
				if n := len(resolvedLines(t, w.read(path), "K-3")); n != 1 {
					t.Errorf("%d lines", n)
				}
			})
		}
	}
}

// A copy beside a file that was cut is no rotation.
func TestACopyBesideItIsNoRotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := w.file("effects.jsonl", intent("K-1"), completed("K-1"), intent("K-2"))
	w.imports(path)
	w.put(path+".bak", w.read(path))
	w.put(path, intent("K-1")+"\n")
	if _, err := w.tryImport(path); !errors.Is(err, effects.ErrLogAlarm) {
		t.Fatal(err)
	}
}

// A file that moved with everything in it is the same file.
func TestTheSameBytesInAnotherInodeAreNoAlarm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := w.file("effects.jsonl", intent("K-1"))
	w.imports(path)
	w.put(path+"~", w.read(path)+completed("K-1")+"\n")
	if err := os.Rename(path+"~", path); err != nil {
		t.Fatal(err)
	}
	w.imports(path)
	w.want("K-1", "taken")
}
