package demo

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"quittance/ledger"
	"quittance/ledger/embedded"
	"quittance/reconcile/access"
)

// Policy is what the demo's server is told about its agent's tool.
//
//go:embed quittance.yaml
var Policy []byte

// Options of a [Stage].
type Options struct {
	Out    io.Writer // what happens, for people
	Policy []byte    // in place of [Policy]; where it asks [Policy]'s bank, it asks the stage's
	Env    []string  // added to the environment of the commands
	Dir    string    // a new or empty folder for all files; "" makes a temporary one
}

// Stage is what the parts are played on: a folder for all files, and a server with a
// new database.
type Stage struct {
	out     io.Writer
	dir     string
	program string
	env     []string

	admin        string // the person's token
	firstAccount string // its token, until a part takes it
	serve        *process
	serverUp     func() (string, error) // waits for the server and gives its URL

	guard   *guard
	counter counter

	mu        sync.Mutex
	processes []*process // in the order of their start
	plays     int
}

const (
	policyFile = "quittance.yaml"
	dataFolder = "data"
)

// Open makes the folder and starts the server, which comes up while the first part
// is played. The caller must call [Stage.Close].
func Open(ctx context.Context, o Options) (*Stage, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("couldn't find our own program: %w", err)
	}
	dir, err := folder(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("couldn't make a folder for the demo: %w", err)
	}
	s := &Stage{
		out: o.Out, dir: dir, program: program, env: append(environment(), o.Env...),
		admin: access.NewToken(access.PersonPrefix), firstAccount: access.NewToken(access.AgentPrefix),
		counter: make(counter, 1),
	}
	if o.Policy == nil {
		o.Policy = Policy
	}
	if err := s.begin(ctx, o.Policy); err != nil {
		return nil, errors.Join(err, s.Close(o.Dir != ""))
	}
	return s, nil
}

// folder makes the folder for all files. One that holds something is refused: nothing
// of somebody's is written over.
func folder(dir string) (string, error) {
	if dir == "" {
		return os.MkdirTemp("", "quittance-demo-")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return "", err
	}
	held, err := os.ReadDir(dir)
	if err == nil && len(held) > 0 {
		err = fmt.Errorf("%s is not empty", dir)
	}
	return dir, err
}

func (s *Stage) begin(ctx context.Context, policy []byte) (err error) {
	// PostgreSQL's user, who is another one for root, must be able to pass through.
	if err := os.Chmod(s.dir, 0o711); err != nil {
		return fmt.Errorf("couldn't open the demo's folder: %w", err)
	}
	at, err := freeAddress()
	if err != nil {
		return err
	}
	s.counter <- at
	policy = bytes.ReplaceAll(policy, []byte(policyBank), []byte(at))
	if err := os.WriteFile(filepath.Join(s.dir, policyFile), policy, 0o600); err != nil {
		return fmt.Errorf("couldn't write the policy: %w", err)
	}
	if s.guard, err = startGuard(s.dir, s.env, s.program); err != nil {
		return err
	}
	s.serve, err = s.start("serve", []string{
		"QUITTANCE_BOOTSTRAP_ADMIN_TOKEN=" + s.admin, "QUITTANCE_BOOTSTRAP_AGENT_TOKEN=" + s.firstAccount,
	}, "serve", "--listen", anyPort, "--data", dataFolder, "--policy", policyFile)
	if err != nil {
		return err
	}
	s.serverUp = sync.OnceValues(func() (string, error) {
		line, err := s.serve.await(ctx, "served", func(line string) bool { return strings.Contains(line, servingMark) })
		_, rest, _ := strings.Cut(line, servingMark)
		url, _, _ := strings.Cut(rest, " ")
		return url, err
	})
	return nil
}

const (
	// anyPort has the system choose one that is free.
	anyPort = "127.0.0.1:0"
	// servingMark stands before the address in the server's log.
	servingMark = "msg=serving url="
)

// start runs a command of ours that ends with the stage at the latest.
func (s *Stage) start(name string, env []string, args ...string) (*process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := start(s.guard, s.dir, name, slices.Concat(s.env, env), s.program, args...)
	if err == nil {
		s.processes = append(s.processes, p)
	}
	return p, err
}

// environment is ours without what would lead a child to somebody's real database.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{
			"DATABASE_URL", "QUITTANCE_ENVIRONMENT", "QUITTANCE_BOOTSTRAP_ADMIN_TOKEN", "QUITTANCE_BOOTSTRAP_AGENT_TOKEN", TokenVariable,
		}, name)
	})
}

// TokenVariable carries an agent's token to its process.
const TokenVariable = "QUITTANCE_TOKEN"

// account gives the token of an account that nobody else has: the one that the server
// was started with, then new ones.
func (s *Stage) account(ctx context.Context, name string) (token string, err error) {
	s.mu.Lock()
	token, s.firstAccount = s.firstAccount, ""
	s.mu.Unlock()
	if token != "" {
		return token, nil
	}
	token = access.NewToken(access.AgentPrefix)
	return token, s.withAccess(ctx, func(a *access.Service) error {
		return a.AddAgentToken(ctx, name, "demo", token, 0)
	})
}

// withAccess works on people and tokens in the database of the running server.
func (s *Stage) withAccess(ctx context.Context, f func(*access.Service) error) error {
	in, err := embedded.Find(filepath.Join(s.dir, dataFolder))
	if err != nil {
		return err
	}
	db, err := ledger.Open(ctx, in.DSN())
	if err != nil {
		return err
	}
	defer db.Close()
	return f(access.New(db))
}

const (
	// stopPatience is for an agent or a bank, which have nothing to put in order.
	stopPatience = 5 * time.Second
	// servePatience is for a server that also stops its database.
	servePatience = 30 * time.Second
)

// Close ends every process, the latest first, and removes the folder unless it is to
// be kept.
func (s *Stage) Close(keep bool) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range slices.Backward(s.processes) {
		patience := stopPatience
		if p == s.serve {
			patience = servePatience
		}
		err = errors.Join(err, p.stop(patience))
	}
	if s.guard != nil {
		err = errors.Join(err, s.guard.close())
	}
	// A server that was killed, by us or by somebody else, leaves its database running.
	if in, findErr := embedded.Find(filepath.Join(s.dir, dataFolder)); findErr == nil {
		err = errors.Join(err, in.Kill())
	}
	if keep {
		return err
	}
	if removeErr := os.RemoveAll(s.dir); removeErr != nil {
		err = errors.Join(err, fmt.Errorf("couldn't remove the demo's folder: %w", removeErr))
	}
	return err
}

func (s *Stage) nextPlay() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plays++
	return s.plays
}

func (s *Stage) narrator() *narrator { return &narrator{out: s.out, began: time.Now()} }
