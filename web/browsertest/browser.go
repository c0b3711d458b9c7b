// Package browsertest drives a real Chromium in tests. Where there is none the test
// fails and says how to install it: a skipped browser test proves nothing.
package browsertest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/playwright-community/playwright-go"
)

// installed tells how to get what is missing.
const installed = "run `script/setup test`, which installs it"

var start = sync.OnceValues(func() (playwright.Browser, error) {
	chromium, err := firstOf(os.Getenv("QUITTANCE_CHROMIUM"), "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
	if err != nil {
		return nil, fmt.Errorf("no Chromium: %s", installed)
	}
	driver := driverFolder()
	if _, err := os.Stat(filepath.Join(driver, "package", "cli.js")); err != nil {
		return nil, fmt.Errorf("no playwright driver in %s: %s", driver, installed)
	}
	if os.Getenv("PLAYWRIGHT_NODEJS_PATH") == "" {
		node, err := exec.LookPath("node")
		if err != nil {
			return nil, fmt.Errorf("no node: %s", installed)
		}
		if err := os.Setenv("PLAYWRIGHT_NODEJS_PATH", node); err != nil {
			return nil, err
		}
	}
	pw, err := playwright.Run(&playwright.RunOptions{DriverDirectory: driver, SkipInstallBrowsers: true, Stdout: os.Stderr, Stderr: os.Stderr})
	if err != nil {
		return nil, fmt.Errorf("couldn't start the playwright driver: %w", err)
	}
	b, err := pw.Chromium.Launch(playwright.BrowserTypeLaunchOptions{
		ExecutablePath: &chromium, Headless: new(true),
		Args: []string{"--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
			"--disable-component-update", "--disable-sync", "--force-color-profile=srgb"},
	})
	if err != nil {
		return nil, fmt.Errorf("couldn't start %s: %w", chromium, err)
	}
	return b, nil
})

func firstOf(names ...string) (string, error) {
	for _, n := range names {
		if n == "" {
			continue
		}
		if path, err := exec.LookPath(n); err == nil {
			return path, nil
		}
	}
	return "", errors.New("none of them is installed")
}

// driverFolder holds the driver as script/setup unpacked it.
func driverFolder() string {
	if dir := os.Getenv("PLAYWRIGHT_DRIVER_PATH"); dir != "" {
		return dir
	}
	return filepath.Join(root(), ".cache", "playwright")
}

// root is the repository.
func root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}

// Axe is the source of axe-core, as script/setup unpacked it.
func Axe(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(driverFolder(), "axe.min.js"))
	if err != nil {
		t.Fatalf("no axe-core: %s (%v)", installed, err)
	}
	return string(b)
}

// Look is how a page is looked at; the zero value is a wide, light window.
type Look struct {
	Width, Height int
	Dark          bool
	NoScript      bool
	Zone          string
	Scale         float64
}

// Browser is a window of its own: cookies and storage are shared with no other.
func Browser(t testing.TB, look Look) playwright.BrowserContext {
	t.Helper()
	b, err := start()
	if err != nil {
		t.Fatal(err)
	}
	if look.Width == 0 {
		look.Width, look.Height = 1280, 860
	}
	if look.Zone == "" {
		look.Zone = "UTC"
	}
	if look.Scale == 0 {
		look.Scale = 1
	}
	scheme := playwright.ColorSchemeLight
	if look.Dark {
		scheme = playwright.ColorSchemeDark
	}
	c, err := b.NewContext(playwright.BrowserNewContextOptions{
		Viewport: &playwright.Size{Width: look.Width, Height: look.Height}, ColorScheme: scheme,
		JavaScriptEnabled: new(!look.NoScript), TimezoneId: &look.Zone, DeviceScaleFactor: &look.Scale,
	})
	if err != nil {
		t.Fatalf("couldn't open a window: %v", err)
	}
	c.SetDefaultTimeout(15_000)
	t.Cleanup(func() { _ = c.Close() })
	return c
}
