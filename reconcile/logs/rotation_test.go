package logs

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"quittance/reconcile/effects"
)

// rotate takes a file's name away and gives it to a new one, as logrotate does: older
// ones move on by one.
func (w *world) rotate(path string) {
	w.t.Helper()
	for _, step := range [][2]string{{".2", ".3"}, {".1", ".2"}, {"", ".1"}} {
		if err := os.Rename(path+step[0], path+step[1]); err != nil && !errors.Is(err, os.ErrNotExist) {
			w.t.Fatal(err)
		}
	}
}

// Whatever was rotated between two looks is read, in its order: the file that was read,
// and those that came and went unseen.
func TestSeveralRotationsBetweenTwoLooksLoseNoLine(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"followed", "restarted"} {
		for _, name := range []string{"begun", "nothing read of it"} {
			t.Run(how+" "+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.put(w.dir+"/effects.jsonl.9", intent("OLD")+"\n") // history: it was there before anybody followed
				path := w.dir + "/effects.jsonl"
				if name == "begun" {
					w.add(path, intent("K-1")+"\n")
				}
				r := w.reader(path)
				w.round(r)
				w.add(path, intent("K-2")+"\n")
				w.rotate(path)
				w.add(path, completed("K-2")+"\n"+intent("K-3")+"\n")
				w.rotate(path)
				w.add(path, completed("K-3")+"\n")
				w.rotate(path)
				w.add(path, intent("K-4")+"\n")
				if how == "restarted" {
					_ = r.Close()
					r = w.reader(path)
				}
				w.round(r)
				for key, state := range map[string]string{"K-2": "taken", "K-3": "taken", "K-4": "in_flight"} {
					w.want(key, state)
				}
				if w.count(`SELECT count(*) FROM effects WHERE client_key = 'OLD'`) != 0 {
					t.Error("what was there before it was followed is no part of it")
				}
				if s := w.state(path); s.Alarm != nil || s.Damaged != 0 || s.Waiting != 0 {
					t.Errorf("%+v", s)
				}
				w.round(r)
				w.add(path, completed("K-4")+"\n")
				if got := w.round(r); got.New != 1 || got.Repeats != 0 {
					t.Errorf("%+v", got)
				}
			})
		}
	}
}

// Where one of them cannot be read any more that is an alarm.
func TestARotatedFileThatCannotBeReadIsAnAlarm(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(w *world, path string) error{
		"compressed": func(w *world, path string) error {
			w.put(path+".1.gz", "\x1F\x8B\x08 and so on")
			later := time.Now().Add(time.Second) // the clock of a file system is coarse
			return errors.Join(os.Chtimes(path+".1.gz", later, later), os.Remove(path+".1"))
		},
		"deleted": func(w *world, path string) error { return os.Remove(path + ".2") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			path := w.file("effects.jsonl", intent("K-1"))
			r := w.reader(path)
			w.round(r)
			w.add(path, intent("K-2")+"\n")
			w.rotate(path)
			w.add(path, intent("K-3")+"\n")
			w.rotate(path)
			w.add(path, intent("K-4")+"\n")
			if err := lose(w, path); err != nil {
				t.Fatal(err)
			}
			if err := r.Round(t.Context(), func(effects.LogReport) {}); !errors.Is(err, effects.ErrLogAlarm) {
				t.Fatalf("%v", err)
			}
		})
	}
}

// What was read and then compressed, its time kept, is no alarm; nor is another log beside
// it, nor a file that only sounds like it.
func TestWhatStandsBesideAFileIsNoRotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := w.file("effects.jsonl", intent("K-1"))
	r := w.reader(path)
	w.round(r)
	w.rotate(path)
	w.round(r)
	info, err := os.Stat(path + ".1")
	if err != nil {
		t.Fatal(err)
	}
	w.put(path+".1.gz", "\x1F\x8B\x08 and so on")
	if err := errors.Join(os.Chtimes(path+".1.gz", info.ModTime(), info.ModTime()), os.Remove(path+".1")); err != nil {
		t.Fatal(err)
	}
	w.imports(w.file("effects-2.jsonl", `{"type":"intent","run":"other","key":"X-1","tool":"note"}`))
	w.file("effects-old-ideas.jsonl", intent("X-2"))
	w.add(path, intent("K-2")+"\n")
	w.round(r)
	w.round(r)
	w.want("K-2", "in_flight")
	if s := w.state(path); s.Alarm != nil || s.Lines != 2 {
		t.Errorf("%+v", s)
	}
}

// An agent that has not noticed the rotation goes on writing to the old file.
func TestLinesThatComeToTheOldFileAfterARotation(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"followed", "restarted"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			path := w.file("effects.jsonl", intent("K-1"))
			r := w.reader(path)
			again := func() {
				if how == "restarted" {
					_ = r.Close()
					r = w.reader(path)
				}
				w.round(r)
			}
			w.round(r)
			w.rotate(path)
			again()
			w.add(path+".1", completed("K-1")+"\n"+intent("K-2")+"\n") // there is no new file yet
			again()
			w.want("K-1", "taken")
			w.want("K-2", "in_flight")
			w.add(path, intent("K-3")+"\n")
			w.add(path+".1", completed("K-2")+"\n")
			again()
			w.want("K-2", "taken")
			w.want("K-3", "in_flight")
			if s := w.state(path); s.Alarm != nil || s.Damaged != 0 || s.Waiting != 0 || s.Lines != 5 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// A file that is gone is an alarm, once a rotation would be over, and also when a copy of
// what was read stands beside it: what was written since is lost.
func TestAFileThatIsGoneIsAnAlarm(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"followed", "imported", "a copy is left", "back with less", "exchanged for a copy"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			path := w.file("effects.jsonl", intent("K-1"), completed("K-1"))
			r := w.reader(path)
			w.round(r)
			if strings.Contains(how, "copy") {
				w.put(path+".bak", w.read(path))
				w.add(path, intent("K-2")+"\n")
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			switch how {
			case "imported":
				if _, err := w.tryImport(path); !errors.Is(err, effects.ErrLogAlarm) {
					t.Fatal(err)
				}
				return
			case "back with less":
				w.round(r)
				w.put(path, intent("K-1")+"\n")
			case "exchanged for a copy":
				w.put(path, "")
			default:
				w.round(r) // a rotation may be under way
				if s := w.state(path); s.Alarm != nil {
					t.Fatalf("at once: %+v", s.Alarm)
				}
				r.gone = r.gone.Add(-goneAfter)
			}
			if err := r.Round(t.Context(), func(effects.LogReport) {}); !errors.Is(err, effects.ErrLogAlarm) {
				t.Fatal(err)
			}
			if err := w.AcknowledgeLog(t.Context(), w.person, r.id, "lost"); err != nil {
				t.Fatal(err)
			}
			w.put(path, intent("K-3")+"\n")
			w.round(r)
			w.want("K-3", "in_flight")
		})
	}
}

// Bytes that were exchanged in place, as many as before, are noticed at the next look, also
// where nothing was read since the follower began.
func TestBytesExchangedInPlace(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"read", "only opened"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			long := make([]string, 0, 120)
			for range 60 { // the exchange is in the middle: not at an edge
				long = append(long, `{"type":"intent","tool":"note","arguments":{"text":"`+strings.Repeat("x", 200)+`"}}`, `{"type":"completed","tool":"note","arguments":{"text":"`+strings.Repeat("x", 200)+`"}}`)
			}
			path := w.file("effects.jsonl", append(append(long[:60:60], intent("K-1")), long[60:]...)...)
			r := w.reader(path)
			w.round(r)
			if how == "only opened" {
				_ = r.Close()
				r = w.reader(path)
				w.round(r)
			}
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err == nil {
				_, err = f.WriteAt([]byte("EVIL"), int64(strings.Index(w.read(path), "ACME")))
				err = errors.Join(err, f.Close(), os.Chtimes(path, time.Time{}, time.Now().Add(time.Second)))
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Round(t.Context(), func(effects.LogReport) {}); !errors.Is(err, effects.ErrLogAlarm) {
				t.Fatal(err)
			}
		})
	}
}
