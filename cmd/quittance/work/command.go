package work

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"quittance/client"
)

// handle runs the command for one run until it has ended, and says what becomes of the
// lease then.
func (w *Worker) handle(ctx context.Context, run *client.Run) {
	log := w.Log.With("run", run.ID(), "epoch", run.Epoch())
	dir, err := os.MkdirTemp("", "quittance-work-")
	if err != nil {
		log.Error("couldn't make a folder for the checkpoint", "error", err)
		w.release(run)
		return
	}
	defer os.RemoveAll(dir)
	cmd, err := w.start(run, dir)
	if err != nil {
		log.Error("the command could not be started; the run is free when its lease has run out", "error", err)
		run.Abandon()
		return
	}
	log.Info("started", "pid", cmd.Process.Pid)
	began := time.Now()
	stopped := w.await(ctx, run, cmd)
	log = log.With("exit", exitText(cmd.ProcessState), "after", time.Since(began).Round(time.Millisecond))
	w.leave(run, cmd.ProcessState, stopped, log)
}

func (w *Worker) start(run *client.Run, dir string) (*exec.Cmd, error) {
	cmd := exec.Command(w.Command[0], w.Command[1:]...)
	cmd.Stdout, cmd.Stderr = w.Stdout, w.Stderr
	handed := run.HandOver()
	if saved := run.Saved(); saved != nil {
		file := filepath.Join(dir, "checkpoint.json")
		raw, err := json.Marshal(saved)
		if err == nil {
			err = os.WriteFile(file, raw, 0o600)
		}
		if err != nil {
			return nil, err
		}
		handed = append(handed, client.EnvCheckpoint+"="+file)
	}
	// What this worker was itself handed is not the command's.
	cmd.Env = slices.DeleteFunc(slices.Clone(w.Env), func(s string) bool {
		name, _, _ := strings.Cut(s, "=")
		return slices.Contains([]string{client.EnvCheckpoint, client.EnvTurn}, name)
	})
	cmd.Env = append(cmd.Env, handed...)
	// A group of its own: what the command starts gets its signals too, and Ctrl-C reaches
	// it only through us.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd, cmd.Start()
}

// await waits for the command's end. When the worker stops, or the run is not held any
// more, the command is told to end, and killed after the grace. stopped says that it
// ended by itself after it had been told because the worker stops.
func (w *Worker) await(ctx context.Context, run *client.Run, cmd *exec.Cmd) (stopped bool) {
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its state says how it ended
		close(ended)
	}()
	over := run.Over()
	select {
	case <-ended:
		return false
	case <-ctx.Done():
		stopped = true
	case <-over:
		// The command may have closed the run, or given it back, and be about to end.
		select {
		case <-ended:
			return false
		case <-ctx.Done():
		case <-time.After(w.Grace):
			w.Log.Warn("the run is not held any more and its command goes on: it is told to end", "run", run.ID())
		}
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	select {
	case <-ended:
		return stopped
	case <-time.After(w.Grace):
	}
	w.killed.Add(1)
	w.Log.Warn("the command did not end within the grace and is killed", "run", run.ID())
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	<-ended
	return false
}

// leave does with the lease what the command's end asks for. It is given back only where
// the command is known to have ended in order: when it was told to, when it says "not
// now", or when its run waits for a person. Else it runs out, as that of a process that
// died; so a command that ends at once is started once a lease, and not in a loop.
func (w *Worker) leave(run *client.Run, s *os.ProcessState, stopped bool, log interface{ Info(string, ...any) }) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseLimit)
	defer cancel()
	code := s.ExitCode()
	view, err := w.Client.Run(ctx, run.ID(), 0)
	switch {
	case err == nil && (view.State == client.RunFinished || view.State == client.RunFailed || view.State == client.RunCancelled):
		run.Abandon()
		log.Info("ended; the run is " + view.State)
	case stopped && code >= 0, code == TempFail:
		w.release(run)
		log.Info("ended; the run was given back")
	case code == 0 && err == nil && view.State == client.RunPaused:
		w.release(run)
		log.Info("ended; the run waits for a decision")
	case code == 0 && err == nil && view.State == client.RunReady:
		run.Abandon()
		log.Info("ended; it gave the run back")
	case code == 0:
		run.Abandon()
		log.Info("ended without closing its run, which is started again when its lease has run out")
	default:
		run.Abandon()
		log.Info("died; its run is started again when its lease has run out, unless it waits for a decision then")
	}
}

func exitText(s *os.ProcessState) string { return s.String() }

// Check finds what keeps the command from being started, before any run is claimed.
func (w *Worker) Check() error {
	if len(w.Command) == 0 {
		return errors.New("no command is given: quittance work --agent NAME -- COMMAND")
	}
	_, err := exec.LookPath(w.Command[0])
	return err
}
