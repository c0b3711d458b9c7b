package main

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// spent is the processor time that this program and its PostgreSQL have used. Unlike
// what a clock on the wall says, others on the machine hardly change it. Where /proc
// does not tell, PostgreSQL's part is missing.
func spent(postmaster int) time.Duration {
	var own syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &own)
	sum := time.Duration(own.Utime.Nano() + own.Stime.Nano())
	processes, _ := os.ReadDir("/proc")
	for _, p := range processes {
		if _, err := strconv.Atoi(p.Name()); err == nil && parent(p.Name()) == postmaster {
			sum += onCPU(p.Name())
		}
	}
	return sum
}

// parent reads the fourth field of stat; the second, a name in brackets, may hold
// anything.
func parent(pid string) int {
	stat, _ := os.ReadFile("/proc/" + pid + "/stat")
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(fields[1])
	return n
}

func onCPU(pid string) time.Duration {
	stat, _ := os.ReadFile("/proc/" + pid + "/schedstat")
	first, _, _ := strings.Cut(string(stat), " ")
	n, _ := strconv.ParseInt(first, 10, 64)
	return time.Duration(n)
}
