// Package typescript compiles what is written in TypeScript, for the tests.
package typescript

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
)

// Client compiles the TypeScript client with its tests and returns the folder that
// holds the JavaScript: src and test below it. What did not change is left alone.
var Client = sync.OnceValues(func() (string, error) {
	root, err := repository()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, "client", "typescript")
	return filepath.Join(dir, ".build"), compile(dir, "tsconfig.json")
})

// Package makes what is published of the client, which everybody finds by its name, and
// returns the client's folder.
var Package = sync.OnceValues(func() (string, error) {
	root, err := repository()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, "client", "typescript")
	return dir, compile(dir, "tsconfig.build.json")
})

// Example compiles the example agent and returns its program.
var Example = sync.OnceValues(func() (string, error) {
	client, err := Package()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(client, "..", "..", "examples", "invoices-typescript")
	return filepath.Join(dir, "dist", "agent.js"), compile(dir, "tsconfig.json")
})

// compile runs the compiler of a folder's own node_modules. Test programs run side by
// side: one compiles, the others wait and find it done.
func compile(dir, project string) error {
	tsc := filepath.Join(dir, "node_modules", ".bin", "tsc")
	if _, err := os.Stat(tsc); err != nil {
		return fmt.Errorf("the TypeScript compiler is missing (make setup installs it): %w", err)
	}
	lock, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("couldn't lock %s: %w", dir, err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("couldn't lock %s: %w", dir, err)
	}
	cmd := exec.Command(tsc, "-p", project)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("couldn't compile %s: %w\n%s", dir, err, out)
	}
	return nil
}

// repository is the folder of go.mod, at or above the working folder.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("couldn't find the repository: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("couldn't find the repository: no go.mod above the working folder")
		}
		dir = up
	}
}
