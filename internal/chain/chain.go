// Package chain runs a real node of an Ethereum-like chain for tests, with contracts of our
// own on it: a token with authorizations (EIP-3009), a token with memos, a token that only
// looks like the first, and a contract that makes several calls at once.
//
// A chain belongs to the test that started it and ends with it. Nothing is mined but by
// what the test does, and a block is a second later than the one before unless the test
// says when it is: nothing waits for a clock.
package chain

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"quittance/reconcile/evm"
)

// ID is the chain's number unless a test asks for another.
const ID = 31337

// Chain is a running node. Its methods fail the test on every error of the node's.
type Chain struct {
	URL string
	ID  uint64
	t   testing.TB

	accounts []evm.Address // unlocked at the node, with money for gas
	http     *http.Client
}

// installed tells how to get what is missing.
const installed = "run `script/setup test`, which installs it"

// folder is this package's.
var folder = sync.OnceValue(func() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(file)
})

// program is the node for this machine, out of the package that npm picked for it.
func program() (string, error) {
	arch := map[string]string{"amd64": "amd64", "arm64": "arm64"}[runtime.GOARCH]
	path := filepath.Join(folder(), "node_modules", "@foundry-rs", "anvil-"+runtime.GOOS+"-"+arch, "bin", "anvil")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("no anvil in %s: %s", path, installed)
	}
	return path, nil
}

// Options of a chain; the zero value is the usual one.
type Options struct {
	ID uint64
	// Time is the first block's time, now if zero.
	Time time.Time
}

// Start runs a chain until the test ends. A block is final once two more are mined on top.
func Start(t testing.TB) *Chain { return StartWith(t, Options{}) }

// StartWith is Start with options.
func StartWith(t testing.TB, o Options) *Chain {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	if o.ID == 0 {
		o.ID = ID
	}
	if o.Time.IsZero() {
		o.Time = time.Now()
	}
	// The shell ends the node when our end of its input closes: also when this process is
	// killed, and nobody is left to clean up.
	cmd := exec.Command("sh", "-c", `"$0" "$@" </dev/null & cat >/dev/null; kill -9 $!; wait`, path, "--host", "127.0.0.1", "--port", "0", "--chain-id", strconv.FormatUint(o.ID, 10),
		"--accounts", "32", "--slots-in-an-epoch", "1", "--timestamp", strconv.FormatInt(o.Time.Unix(), 10), "--order", "fifo", "--threads", "1", "--no-mining")
	cmd.Stderr = os.Stderr
	held, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("couldn't start the chain: %v", err)
	}
	t.Cleanup(func() {
		_ = held.Close()
		_ = cmd.Wait()
	})
	c := &Chain{ID: o.ID, t: t, http: &http.Client{Timeout: 2 * time.Minute}}
	c.URL = "http://" + listening(t, out)
	c.Call("anvil_setBlockTimestampInterval", 1)
	raw := c.Call("eth_accounts")
	if err := json.Unmarshal(raw, &c.accounts); err != nil {
		t.Fatalf("the chain's accounts are %s", raw)
	}
	return c
}

var listens = regexp.MustCompile(`Listening on (127\.0\.0\.1:\d+)`)

// listening waits for the node to say where it listens, and reads on so that it never
// blocks on a full pipe.
func listening(t testing.TB, out io.Reader) string {
	t.Helper()
	found := make(chan string, 1)
	go func() {
		defer close(found)
		told := false
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if m := listens.FindStringSubmatch(lines.Text()); m != nil && !told {
				told = true
				found <- m[1]
			}
		}
	}()
	select {
	case address, ok := <-found:
		if ok {
			return address
		}
		t.Fatal("the chain ended before it listened")
	case <-time.After(60 * time.Second):
		t.Fatal("the chain did not listen within a minute")
	}
	return ""
}

// Try asks the node.
func (c *Chain) Try(method string, params ...any) (json.RawMessage, error) {
	if params == nil {
		params = []any{}
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	got, err := c.http.Post(c.URL, "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer got.Body.Close()
	var answer struct {
		Result json.RawMessage
		Error  *struct{ Message string }
	}
	if err := json.NewDecoder(got.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if answer.Error != nil {
		return nil, errors.New(answer.Error.Message)
	}
	return answer.Result, nil
}

// Call is Try where an error fails the test.
func (c *Chain) Call(method string, params ...any) json.RawMessage {
	c.t.Helper()
	raw, err := c.Try(method, params...)
	if err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
	return raw
}

func (c *Chain) text(method string, params ...any) (s string) {
	c.t.Helper()
	raw := c.Call(method, params...)
	if err := json.Unmarshal(raw, &s); err != nil {
		c.t.Fatalf("%s answered %s", method, raw)
	}
	return s
}

func (c *Chain) number(method string, params ...any) uint64 {
	c.t.Helper()
	return c.parse(c.text(method, params...))
}

func (c *Chain) parse(hex string) uint64 {
	c.t.Helper()
	n, err := strconv.ParseUint(hex, 0, 64)
	if err != nil {
		c.t.Fatalf("the chain says %q, which is no number", hex)
	}
	return n
}
