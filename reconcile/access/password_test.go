package access

import (
	"strings"
	"testing"
	"time"
)

func TestPasswords(t *testing.T) {
	t.Parallel()
	const right = "correct horse battery staple"
	a, b := hashPassword(right), hashPassword(right)
	if a == b {
		t.Error("two hashes of one password are equal: the salt is not random")
	}
	if strings.Contains(a, right) || !strings.HasPrefix(a, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("the hash is %s", a)
	}
	for password, want := range map[string]bool{right: true, right + " ": false, "": false, strings.ToUpper(right): false, strings.Repeat("x", 300): false} {
		if samePassword(a, password) != want {
			t.Errorf("%.20q: %v, want %v", password, !want, want)
		}
	}
	for _, broken := range []string{"", "$argon2id$", "$argon2id$v=19$m=19456,t=0,p=1$YQ$YQ", "$argon2id$v=19$m=1,t=1,p=0$YQ$YQ", "$2a$10$abc$d$e", a[:len(a)-40] + "!!!"} {
		if samePassword(broken, right) {
			t.Errorf("a broken hash matches: %s", broken)
		}
	}
}

func TestCheckPassword(t *testing.T) {
	t.Parallel()
	for password, good := range map[string]bool{
		"short": false, strings.Repeat("a", 40): false, strings.Repeat("ab", 200): false, "twelve chars": true, "пароль из слов": true,
	} {
		if (CheckPassword(password) == nil) != good {
			t.Errorf("%.20q: %v", password, CheckPassword(password))
		}
	}
}

func TestWaitAfter(t *testing.T) {
	t.Parallel()
	for misses, want := range map[int]time.Duration{-3: 0, 0: 0, 1: 2 * time.Second, 4: 16 * time.Second, 30: 15 * time.Minute, 10_000: 15 * time.Minute} {
		if got := waitAfter(misses); got != want {
			t.Errorf("after %d: %v, want %v", misses, got, want)
		}
	}
}

func TestFormTokens(t *testing.T) {
	t.Parallel()
	a, b := &Session{key: []byte("key of a")}, &Session{key: []byte("key of b")}
	token := a.FormToken()
	if a.CheckForm(token) != nil || b.CheckForm(token) == nil || a.FormToken() == token {
		t.Error("a token is not bound to its session, or is not a new one each time")
	}
	for _, bad := range []string{"", "x", token[:len(token)-1], token + "A", strings.ToLower(token) + "-"} {
		if a.CheckForm(bad) == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
