package payer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"quittance/client"
	"quittance/cmd/quittance/demo/bank"
)

// keeper is an agent that keeps its own log, as docs/effects_jsonl.md asks for, and knows
// of nothing but that file and the bank.
type keeper struct {
	*payer
	f *os.File
}

// line is a line of the file, as far as the agent needs it.
type line struct {
	Type      string          `json:"type"`
	Run       string          `json:"run"`
	Key       string          `json:"key,omitempty"`
	Tool      string          `json:"tool,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Reference string          `json:"reference,omitempty"`
	Result    any             `json:"result,omitempty"`
	Verdict   string          `json:"verdict,omitempty"`
}

// waits is how long an agent looks for a decision in its file before it gives up for now.
const waits = 10 * time.Second

// keep pays the invoices by the file. It gives up when the file takes no more.
func (a *payer) keep(ctx context.Context) error {
	f, err := os.OpenFile(a.File, os.O_APPEND|os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("couldn't open the log file: %w", err)
	}
	defer f.Close()
	if err := a.limit(f); err != nil {
		return err
	}
	k := &keeper{a, f}
	tell(Event{Kind: Holds, Since: a.now()})
	a.park(Opened, a.Turn)
	for i := range a.Invoices {
		if err := k.pay(ctx, i); err != nil {
			return err
		}
	}
	if err := k.write(line{Type: "closed", Run: a.Run}); err != nil {
		return err
	}
	tell(Event{Kind: Finished})
	return nil
}

// limit lets the file grow by no more than there is room for: what a quota does, where one
// write puts down a part of a line and the next one nothing.
func (a *payer) limit(f *os.File) error {
	if a.Room == 0 {
		return nil
	}
	s, err := f.Stat()
	if err != nil {
		return fmt.Errorf("couldn't look at the log file: %w", err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	most := uint64(s.Size() + a.Room)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
		return fmt.Errorf("couldn't limit the log file: %w", err)
	}
	return nil
}

// last is the file's last word about a call; the zero line where it has none.
func (k *keeper) last(key string) (last line, err error) {
	text, err := os.ReadFile(k.File)
	if err != nil {
		return last, fmt.Errorf("couldn't read the log file: %w", err)
	}
	for one := range bytes.Lines(text) {
		var l line
		if bytes.HasSuffix(one, []byte("\n")) && json.Unmarshal(one, &l) == nil && l.Run == k.Run && l.Key == key {
			last = l
		}
	}
	return last, nil
}

// write appends a line, and returns when it is on the disk.
func (k *keeper) write(l line) error {
	if err := syscall.Flock(int(k.f.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("couldn't lock the log file: %w", err)
	}
	defer func() { _ = syscall.Flock(int(k.f.Fd()), syscall.LOCK_UN) }()
	text, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("couldn't write a line: %w", err)
	}
	text = append(text, '\n')
	s, err := k.f.Stat()
	end := make([]byte, 1)
	if err == nil && s.Size() > 0 {
		_, err = k.f.ReadAt(end, s.Size()-1)
	}
	if err == nil && s.Size() > 0 && end[0] != '\n' {
		text = append([]byte{'\n'}, text...) // what a process left behind that could not write it whole
	}
	if err == nil {
		_, err = k.f.Write(text)
	}
	if err == nil {
		err = k.f.Sync()
	}
	if err != nil {
		return fmt.Errorf("couldn't write a line: %w", err)
	}
	return nil
}

func (k *keeper) pay(ctx context.Context, i int) error {
	k.park(BeforeIntent, i)
	invoice := k.Invoices[i]
	for end := time.Now().Add(waits); ; time.Sleep(100 * time.Millisecond) {
		l, err := k.last(invoice)
		if err != nil {
			return err
		}
		switch {
		case l.Type == "completed", l.Type == "resolved" && l.Verdict != "not_taken":
			return nil
		case l.Type == "intent":
		default:
			if done, err := k.perform(ctx, i); done || err != nil {
				return err
			}
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s: %w", invoice, client.ErrPaused)
		}
	}
}

// perform makes a call that the file lets run. An outcome that is not known is not written.
func (k *keeper) perform(ctx context.Context, i int) (done bool, err error) {
	invoice := k.Invoices[i]
	args, err := json.Marshal(map[string]any{"vendor": Payee, "invoice": invoice, "amount": 420000, "currency": "USD"})
	if err != nil {
		return false, err
	}
	if err := k.write(line{Type: "intent", Run: k.Run, Key: invoice, Tool: k.Tool, Arguments: args}); err != nil {
		return false, err
	}
	k.park(AfterIntent, i)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	p, err := bank.Pay(ctx, k.Bank, "file/"+k.Run+"/"+invoice, Order(invoice))
	if err != nil {
		return false, nil
	}
	k.park(AfterAct, i)
	if err := k.write(line{Type: "completed", Run: k.Run, Key: invoice, Reference: p.ID, Result: Receipt{p.ID}}); err != nil {
		return false, err
	}
	k.park(AfterRecord, i)
	return true, nil
}
