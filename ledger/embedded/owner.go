package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// owner is the user that the server runs as.
type owner struct {
	uid, gid int
	switched bool   // we are root, and it is not
	caller   string // the name of the user that we are, which peer authentication sees
}

// serverOwner is ourselves, or, because PostgreSQL refuses to run as root,
// an unprivileged user when we are root.
func serverOwner() (owner, error) {
	me, err := user.Current()
	if err != nil {
		return owner{}, fmt.Errorf("couldn't find out who we are: %w", err)
	}
	o := owner{uid: os.Geteuid(), gid: os.Getegid(), caller: me.Username}
	if o.uid != 0 {
		return o, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if err := errors.Join(err1, err2); err != nil {
			return owner{}, fmt.Errorf("couldn't read the ids of user %s: %w", name, err)
		}
		o.uid, o.gid, o.switched = uid, gid, true
		return o, nil
	}
	return owner{}, errors.New("couldn't find a user to run PostgreSQL as: we are root, and there is neither a user postgres nor nobody")
}

// command prepares a PostgreSQL program that runs as the owner. Its environment is
// its own: ours may hold tokens and a database URL, and any local user may be able
// to read a server's environment. It gets a session of its own so that a Ctrl-C
// meant for us does not reach it.
func (o owner) command(dir, program string, args ...string) *exec.Cmd {
	c := exec.Command(program, args...)
	c.Dir = dir
	c.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if o.switched {
		c.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(o.uid), Gid: uint32(o.gid)}
	}
	return c
}

// canEnter checks each folder above the data: PostgreSQL's own message for this says
// neither which folder nor whose.
func (o owner) canEnter(dir string) error {
	if !o.switched {
		return nil
	}
	for d := dir; ; d = filepath.Dir(d) {
		st, err := os.Stat(d)
		if err != nil {
			return fmt.Errorf("couldn't read a folder above the data: %w", err)
		}
		s, ok := st.Sys().(*syscall.Stat_t)
		if !ok {
			return nil
		}
		may := fs.FileMode(0o001)
		switch {
		case int(s.Uid) == o.uid:
			may = 0o100
		case int(s.Gid) == o.gid:
			may = 0o010
		}
		if st.Mode().Perm()&may == 0 {
			return fmt.Errorf("couldn't use the data folder %s: we are root, PostgreSQL runs as user %d, and that user may not enter %s (mode %04o); choose another --data",
				dir, o.uid, d, st.Mode().Perm())
		}
		if d == filepath.Dir(d) {
			return nil
		}
	}
}
