package access

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"

	"quittance/ledger"
	store "quittance/ledger/access"
)

var (
	// ErrFormForeign: the form was not made for this session.
	ErrFormForeign = errors.New("the form was not made for this session")
	// ErrFormUsed: the form was sent before.
	ErrFormUsed = errors.New("the form was sent already")
)

const nonceLen = 16

// FormToken makes the token of one form: it proves that the form came from a page of
// this session, and works once.
func (n *Session) FormToken() string {
	nonce := make([]byte, nonceLen)
	_, _ = rand.Read(nonce) // never fails
	return base64.RawURLEncoding.EncodeToString(append(nonce, n.mac(nonce)...))
}

func (n *Session) mac(nonce []byte) []byte {
	m := hmac.New(sha256.New, n.key)
	m.Write(nonce)
	return m.Sum(nil)[:nonceLen]
}

// UseForm uses a form token up; [ErrFormForeign] or [ErrFormUsed]. Of two that send
// the same form at once, one is answered nil.
func (s *Service) UseForm(ctx context.Context, n *Session, token string) error {
	if err := n.CheckForm(token); err != nil {
		return err
	}
	raw, _ := base64.RawURLEncoding.DecodeString(token) // CheckForm has read it
	var first bool
	err := s.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) (err error) {
		first, err = store.UseForm(ctx, tx, n.ID, raw[:nonceLen])
		return err
	})
	if err == nil && !first {
		err = ErrFormUsed
	}
	return err
}

// CheckForm tells whether a token is of this session, used or not, even of one that is
// over; [ErrFormForeign].
func (n *Session) CheckForm(token string) error {
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(raw) != 2*nonceLen || !hmac.Equal(raw[nonceLen:], n.mac(raw[:nonceLen])) {
		return ErrFormForeign
	}
	return nil
}
