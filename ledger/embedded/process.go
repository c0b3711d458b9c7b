package embedded

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// A process of a server is known by its title. The postmaster's is its command line,
// which names the cluster id; PostgreSQL titles each child "postgres: <id>: ...".
// Titles are readable for everybody, where /proc/PID/cwd needs a capability that
// containers do not give to root. A zombie has no title and so counts as gone, which
// matters below an init that does not reap.

// isPostmaster tells whether pid is the postmaster of the cluster id. A process id
// found in a file proves nothing: after a crash it may be anybody's.
func isPostmaster(pid int, id string) bool {
	t := title(pid)
	return !strings.HasPrefix(t, "postgres: ") && strings.Contains(t, clusterArg(id))
}

func clusterArg(id string) string { return "cluster_name=" + id }

// processes lists every process of the cluster id: the postmaster, its children, and
// a child so young that it still has the postmaster's title.
func processes(id string) []int {
	var found []int
	for pid, t := range titles() {
		if strings.HasPrefix(t, "postgres: "+id+": ") || strings.Contains(t, clusterArg(id)) {
			found = append(found, pid)
		}
	}
	return found
}

func title(pid int) string {
	if pid <= 0 {
		return ""
	}
	if runtime.GOOS == "linux" {
		b, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		return strings.TrimSpace(strings.ReplaceAll(string(b), "\x00", " "))
	}
	out, _ := exec.Command("ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return strings.TrimSpace(string(out))
}

func titles() map[int]string {
	all := map[int]string{}
	if runtime.GOOS == "linux" {
		dirs, _ := filepath.Glob("/proc/[0-9]*")
		for _, d := range dirs {
			if pid, err := strconv.Atoi(filepath.Base(d)); err == nil {
				all[pid] = title(pid)
			}
		}
		return all
	}
	out, _ := exec.Command("ps", "-ww", "-axo", "pid=,command=").Output()
	for line := range strings.Lines(string(out)) {
		pid, t, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.Atoi(pid); err == nil {
			all[n] = strings.TrimSpace(t)
		}
	}
	return all
}

// kill sends a signal; a process that is already gone is what we wanted.
func kill(pid int, s syscall.Signal) { _ = syscall.Kill(pid, s) }
