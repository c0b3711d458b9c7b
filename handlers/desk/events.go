package desk

import (
	"context"
	"strconv"
	"time"

	"quittance/reconcile/notify"
	"quittance/web"
)

// checkSession is how often an open stream makes sure that its session still lives.
const checkSession = time.Minute

// events tells an open page that something changed: all of it, or one run's.
func (d *Desk) events(r *request) error {
	topic := notify.All
	if id, err := strconv.ParseInt(r.QueryParam("run"), 10, 64); err == nil {
		topic = "run:" + whole(id)
	}
	hints, cancel := d.hub.Subscribe(topic)
	defer cancel()
	secret := d.cookie.Secret(r.Context)
	checked := time.Now()
	return web.Events(r.Context, hints, func() bool {
		if time.Since(checked) < checkSession {
			return true
		}
		checked = time.Now()
		ctx, cancel := context.WithTimeout(r.ctx(), 5*time.Second)
		defer cancel()
		// A stream must not keep a session alive by itself: only whether it lives is asked.
		return d.access.Lives(ctx, secret)
	})
}
