package canon

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/text/unicode/norm"
)

// Key is a SHA-256 over the canonical form of what it names.
type Key [sha256.Size]byte

// String is the key in lower-case hexadecimal, 64 characters.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// What a key names is the first part of what is hashed, so that keys of different
// sorts never collide. A change in the canonical form needs new names here.
const (
	effectKey   = "quittance effect 1"
	mintedKey   = "quittance minted effect 1"
	callDigest  = "quittance call 1"
	claimByName = "quittance claim by business key 1"
	claimByCall = "quittance claim by call 1"
	vendorKey   = "quittance vendor key 1"
)

// EffectKey names the occurrence-th call (from 1) of tool with args in run. args must
// already be without the tool's volatile fields. Run and tool count byte for byte.
func EffectKey(run, tool string, args *Value, occurrence int) Key {
	return sum(effectKey, func(b []byte) []byte {
		b = appendText(appendText(b, run), tool)
		b = args.AppendCanonical(b)
		return appendNumber(b, parseDecimal(strconv.Itoa(occurrence)))
	})
}

// MintedKey names an effect whose key its client chose. It replaces arguments and
// occurrence and holds within the run alone; whether a second begin under it is the
// same call is told by [CallDigest].
func MintedKey(run, key string) Key {
	return sum(mintedKey, func(b []byte) []byte { return appendText(appendText(b, run), key) })
}

// CallDigest names a call whatever its run and occurrence.
func CallDigest(tool string, args *Value) Key {
	return sum(callDigest, func(b []byte) []byte {
		return args.AppendCanonical(appendText(b, tool))
	})
}

// ClaimKey names the claim on a business key. Composed and decomposed spellings of it
// are one claim.
func ClaimKey(account, tool, businessKey string) Key {
	return sum(claimByName, func(b []byte) []byte {
		b = appendText(appendText(b, account), tool)
		return appendText(b, norm.NFC.String(businessKey))
	})
}

// CallClaim names the claim of a tool that has no business key, by the [CallDigest].
// No business key can spell it.
func CallClaim(account, tool string, call Key) Key {
	return sum(claimByCall, func(b []byte) []byte {
		b = appendText(appendText(b, account), tool)
		return append(b, call[:]...)
	})
}

// VendorKey is the idempotency key passed on to the downstream: a pure function of
// its arguments, so that a restored server hands out the same one. It is "qt_" and
// 52 characters of a-z and 2-7, which also survive a vendor that ignores case.
func VendorKey(account, run, key string) string {
	k := sum(vendorKey, func(b []byte) []byte {
		return appendText(appendText(appendText(b, account), run), key)
	})
	return "qt_" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(k[:]))
}

// IsVendorKey tells whether a text has the form of a [VendorKey].
func IsVendorKey(text string) bool {
	rest, ok := strings.CutPrefix(text, "qt_")
	return ok && len(rest) == 52 && strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 1024); return &b }}

func sum(names string, rest func([]byte) []byte) Key {
	buf := buffers.Get().(*[]byte)
	b := rest(appendText((*buf)[:0], names))
	k := Key(sha256.Sum256(b))
	// A rare giant must not stay in the pool for ever.
	if cap(b) <= 64<<10 {
		*buf = b
		buffers.Put(buf)
	}
	return k
}
