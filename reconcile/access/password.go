package access

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
)

// Argon2id's cost: OWASP's second choice, 19 MiB and two passes, about 40 ms. hashing
// keeps a flood of sign-ins from taking all memory and both cores.
const (
	argonMemory = 19 << 10 // KiB
	argonTime   = 2
	argonLanes  = 1
	argonLen    = 32
)

var hashing = make(chan struct{}, 2)

// Passwords are long rather than odd; the upper bound keeps hashing cheap.
const (
	minPassword = 12
	maxPassword = 256
)

// CheckPassword says why a new password will not do.
func CheckPassword(password string) error {
	n := utf8.RuneCountInString(password)
	switch {
	case n < minPassword:
		return fmt.Errorf("a password has at least %d characters; a sentence is a good one", minPassword)
	case len(password) > maxPassword:
		return fmt.Errorf("a password has at most %d bytes", maxPassword)
	case len(strings.Trim(password, password[:1])) == 0:
		return errors.New("a password is more than one character repeated")
	}
	return nil
}

// hashPassword gives the PHC string of a password under a salt of its own.
func hashPassword(password string) string {
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // never fails
	hashing <- struct{}{}
	defer func() { <-hashing }()
	key := argon2.IDKey([]byte(password), salt, argonTime, argonMemory, argonLanes, argonLen)
	enc := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonLanes, enc(salt), enc(key))
}

// nobody is compared with when there is no such person, so that both take as long.
var nobody = hashPassword("nobody has this password")

// samePassword checks a password against a PHC string; a malformed one matches nothing.
func samePassword(phc, password string) bool {
	if len(password) > maxPassword {
		return false
	}
	parts := strings.Split(phc, "$")
	if len(parts) != 6 || parts[1] != "argon2id" {
		return false
	}
	var memory, passes uint32
	var lanes uint8
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &memory, &passes, &lanes); err != nil || passes == 0 || lanes == 0 {
		return false
	}
	salt, err1 := base64.RawStdEncoding.DecodeString(parts[4])
	want, err2 := base64.RawStdEncoding.DecodeString(parts[5])
	if err1 != nil || err2 != nil || len(want) == 0 {
		return false
	}
	hashing <- struct{}{}
	defer func() { <-hashing }()
	got := argon2.IDKey([]byte(password), salt, passes, memory, lanes, uint32(len(want)))
	return subtle.ConstantTimeCompare(got, want) == 1
}
