package web

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

// guessLimit is how many bearer tokens that open nothing one address may try in a minute.
// A fleet that was given a wrong token stays below it; a token of ours cannot be guessed at
// any pace, but one that somebody chose themselves may be short.
const guessLimit = 300

// limitGuesses stops an address that tried too many tokens until the minute is over. A token
// that opened something before goes on: an agent must not wait because of its neighbour.
func limitGuesses(known func(bearer string) bool) echo.MiddlewareFunc {
	missed := NewLimiter()
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			token := Bearer(c)
			if token == "" || known == nil {
				return next(c)
			}
			address := Address(c)
			if missed.Counted(address) >= guessLimit && !known(token) {
				return &Problem{Status: http.StatusTooManyRequests, Code: "too_many_tokens", Detail: "Too many tokens that open nothing came from this address. Try again in a minute.",
					Retryable: true, RetryAction: "retry_same", RetryAfter: 60 - time.Now().Second()}
			}
			err := next(c)
			if doc, ok := errors.AsType[Document](err); ok {
				if status, _, _ := doc.Document(); status == http.StatusUnauthorized {
					missed.Count(address)
				}
			}
			return err
		}
	}
}

// Bearer is the token of a request's Authorization header, "" without one.
func Bearer(c echo.Context) string {
	scheme, token, _ := strings.Cut(c.Request().Header.Get(echo.HeaderAuthorization), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
