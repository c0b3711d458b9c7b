package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"quittance/client"
	"quittance/cmd/quittance/demo"
	"quittance/cmd/quittance/demo/bank"
	"quittance/ledger"
	"quittance/ledger/embedded"
	"quittance/ledger/proof"
	"quittance/reconcile/access"
	"quittance/reconcile/guards"
)

// patience is far more than any single step takes, also on a busy machine.
const patience = 60 * time.Second

// programs are what is under test, built.
type programs struct {
	quittance string
	payer     string // a program that is an agent when payer.Variable is set
	node      string // the compiled example; "" without it
	root      string // of the repository
	broken    string // the guard that is switched off; "" for none
	seed      uint64
	clocks    string // the folder of what makes clocks wrong; "" where they are right
}

// world is everything that the agents meet: two servers on one PostgreSQL, two banks, and
// the links between all of them.
type world struct {
	programs
	dir   string
	guard *guard
	in    *embedded.Instance
	db    *ledger.DB
	env   []string // of servers: with the way to the database, which no agent has

	postgres *link
	pay, ask map[bank.Keys]*link // the way of agents to a bank, and of servers and people
	books    map[bank.Keys]string
	servers  [2]*member
	banks    map[bank.Keys]*member

	agentToken string
	people     [2]*client.Client
	reader     *client.Client

	kills, stops, cuts atomic.Int64
	mu                 sync.Mutex
	troubles           []string // what ended that nobody had ended
	stop               func()
}

var bankOf = map[kind]bank.Keys{keeps: bank.Honour, ignores: bank.Ignore, lands: bank.Ignore}

// openWorld starts everything in dir.
func openWorld(ctx context.Context, dir string, p programs) (w *world, err error) {
	w = &world{programs: p, dir: dir, agentToken: access.NewToken(access.AgentPrefix), stop: func() {},
		pay: map[bank.Keys]*link{}, ask: map[bank.Keys]*link{}, books: map[bank.Keys]string{}, banks: map[bank.Keys]*member{}}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if w.guard, err = startGuard(p.quittance); err != nil {
		return nil, err
	}
	if err := w.openDatabase(ctx); err != nil {
		return nil, err
	}
	for _, keys := range []bank.Keys{bank.Honour, bank.Ignore} {
		if err := w.openBank(keys); err != nil {
			return nil, err
		}
	}
	ask := map[kind]string{}
	for k, keys := range bankOf {
		ask[k] = w.ask[keys].address()
	}
	if err := os.WriteFile(w.path("quittance.yaml"), policyText(ask), 0o600); err != nil {
		return nil, fmt.Errorf("couldn't write the policy: %w", err)
	}
	for i := range w.servers {
		if err := w.openServer(i); err != nil {
			return nil, err
		}
	}
	return w, w.openPeople(ctx)
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// openDatabase starts PostgreSQL, which is started again whenever it dies.
func (w *world) openDatabase(ctx context.Context) (err error) {
	if w.in, err = embedded.Start(ctx, embedded.Options{Dir: w.path("postgres")}); err != nil {
		return err
	}
	if w.db, err = ledger.Open(ctx, w.in.DSN()); err != nil {
		return err
	}
	if err := w.db.Migrate(ctx); err != nil {
		return err
	}
	if w.broken == "reference" {
		if err := proof.DropReferences(ctx, w.db); err != nil {
			return err
		}
	}
	if w.postgres, err = newLink("unix"); err != nil {
		return err
	}
	u, err := url.Parse(w.in.DSN())
	if err != nil {
		return fmt.Errorf("couldn't read the database's address: %w", err)
	}
	w.postgres.lead(filepath.Join(u.Query().Get("host"), ".s.PGSQL."+u.Query().Get("port")))
	through := url.URL{Scheme: "postgres", User: u.User, Host: w.postgres.address(), Path: u.Path, RawQuery: "sslmode=disable"}
	w.env = append(environ(), "DATABASE_URL="+through.String(), "QUITTANCE_ENVIRONMENT=torture", "GOGC=",
		"QUITTANCE_BOOTSTRAP_AGENT_TOKEN="+w.agentToken, guards.Variable+"="+w.broken)
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var done sync.WaitGroup
	done.Go(func() { w.in.Supervise(watching, slog.New(slog.DiscardHandler)) })
	w.stop = func() { cancel(); done.Wait() }
	return nil
}

// environ is what every process gets: nothing by which it would find a database, a server
// or a token that it was not told of.
func environ() []string {
	return slices.DeleteFunc(os.Environ(), func(pair string) bool {
		return strings.HasPrefix(pair, "DATABASE_URL=") || strings.HasPrefix(pair, "QUITTANCE_") || strings.HasPrefix(pair, "PG")
	})
}

func (w *world) openBank(keys bank.Keys) (err error) {
	if w.pay[keys], err = newLink("tcp"); err != nil {
		return err
	}
	if w.ask[keys], err = newLink("tcp"); err != nil {
		return err
	}
	w.books[keys] = w.path(string(keys) + ".jsonl")
	w.banks[keys], err = w.keep("bank "+string(keys), demo.BankOpen, func(address string) {
		w.pay[keys].lead(address)
		w.ask[keys].lead(address)
	}, environ(), w.quittance, "demo-bank", "--ledger", w.books[keys], "--keys", string(keys), "--listen", "127.0.0.1:0")
	return err
}

func (w *world) openServer(i int) error {
	k, err := newLink("tcp")
	if err != nil {
		return err
	}
	w.servers[i], err = w.keep(fmt.Sprint("server ", i), "msg=serving url=", k.lead, w.env,
		w.quittance, "serve", "--listen", "127.0.0.1:0", "--data", w.path("anchors"), "--policy", w.path("quittance.yaml"))
	if err == nil {
		w.servers[i].link = k
	}
	return err
}

// openPeople makes two operators, and a reader for the agents' side.
func (w *world) openPeople(ctx context.Context) error {
	who := access.New(w.db)
	for i, name := range []string{"Petra", "Quentin"} {
		id, err := who.AddPerson(ctx, name, "", []string{"operator"})
		if err != nil {
			return err
		}
		token := access.NewToken(access.PersonPrefix)
		if err := who.AddPersonToken(ctx, id, "torture", token, 0); err != nil {
			return err
		}
		w.people[i] = w.client(i, token)
	}
	w.reader = w.client(0, w.agentToken)
	return nil
}

func (w *world) client(server int, token string) *client.Client {
	return client.New("http://"+w.servers[server].link.address(), token, client.WithSpool(w.path("spool-torture")), client.WithPatience(patience))
}

// booked is the bank's truth: its own file.
func (w *world) booked(k kind) (map[string][]bank.Payment, error) {
	return bank.Booked(w.books[bankOf[k]])
}

// killPostgres kills the postmaster; its children end themselves.
func (w *world) killPostgres() error {
	in, err := embedded.Find(w.path("postgres"))
	if errors.Is(err, embedded.ErrNotRunning) {
		return nil // it is dead, and not up again
	}
	if err != nil {
		return err
	}
	w.kills.Add(1)
	return syscall.Kill(in.PID(), syscall.SIGKILL)
}

// verify has the program recompute its log, fold it and check the money.
func (w *world) verify() (findings []string, err error) {
	p, err := w.guard.start("verify", w.env, nil, w.quittance, "verify", "--look-only", "--data", w.path("anchors"))
	if err != nil {
		return nil, err
	}
	switch p.wait(5 * time.Minute) {
	case 0:
		return nil, nil
	case 3:
		return []string{p.tail(20)}, nil
	}
	return nil, fmt.Errorf("couldn't verify: %s", p.tail(5))
}

func (w *world) trouble(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.troubles = append(w.troubles, fmt.Sprintf(format, args...))
}

// close ends everything. What is left in dir is the caller's.
func (w *world) close() error {
	for _, c := range append(w.people[:], w.reader) {
		if c != nil {
			c.Close()
		}
	}
	for _, m := range append(w.servers[:], w.banks[bank.Honour], w.banks[bank.Ignore]) {
		if m != nil {
			m.close()
		}
	}
	w.stop()
	var err error
	if w.db != nil {
		err = w.db.Close()
	}
	if w.in != nil {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		err = errors.Join(err, w.in.Stop(ctx))
	}
	if w.guard != nil {
		w.guard.close()
	}
	return err
}

// asJSON is for what a process is told.
func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}
