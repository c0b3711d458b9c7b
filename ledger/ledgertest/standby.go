package ledgertest

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"quittance/ledger/embedded"
)

// Standby makes a streaming standby of the server. With synchronous each commit waits
// for its disk from the return on.
func (p *Private) Standby(synchronous bool) *Private {
	t := p.t
	t.Helper()
	// Its receiver runs as PostgreSQL's own user, whom the file lets in by no other line. Only
	// that user can enter the folder of the socket.
	hba := filepath.Join(p.dir, "postgres", "pg_hba.conf")
	before, err := os.ReadFile(hba)
	if err == nil {
		err = os.WriteFile(hba, append([]byte("local replication all trust\n"), before...), 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.admin(`SELECT pg_reload_conf()`)
	s := &Private{t: t, dir: DataDir(t)}
	t.Cleanup(s.Kill)
	program, err := embedded.Program("pg_basebackup", 0)
	if err != nil {
		t.Fatal(err)
	}
	cluster := filepath.Join(s.dir, "postgres")
	st, err := os.Stat(hba)
	if err != nil {
		t.Fatal(err)
	}
	owner := st.Sys().(*syscall.Stat_t)
	for _, c := range [][]string{
		{program, "--pgdata=" + cluster, "--wal-method=stream", "--checkpoint=fast", "--write-recovery-conf", "--dbname=" + p.AdminDSN()},
		{"chown", "-R", fmt.Sprintf("%d:%d", owner.Uid, owner.Gid), cluster},
	} {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", c, err, out)
		}
	}
	s.Start()
	want := "async"
	if synchronous {
		want = "sync"
		p.admin(`ALTER SYSTEM SET synchronous_standby_names = '*'`)
		p.admin(`SELECT pg_reload_conf()`)
	}
	wait(t, p, `SELECT EXISTS (SELECT 1 FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = '`+want+`')`)
	return s
}

// Promote makes a standby the primary.
func (p *Private) Promote() {
	p.t.Helper()
	p.admin(`SELECT pg_promote(true, 60)`)
	wait(p.t, p, `SELECT NOT pg_is_in_recovery()`)
}

func (p *Private) admin(statement string) {
	p.t.Helper()
	db, err := sql.Open("postgres", p.AdminDSN())
	if err == nil {
		defer db.Close()
		_, err = db.ExecContext(p.t.Context(), statement)
	}
	if err != nil {
		p.t.Fatalf("%s: %v", statement, err)
	}
}

func wait(t testing.TB, p *Private, condition string) {
	t.Helper()
	db, err := sql.Open("postgres", p.AdminDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		var ok bool
		if err := db.QueryRowContext(t.Context(), condition).Scan(&ok); err == nil && ok {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("it never came: %s", condition)
		}
	}
}
