package desk

import "net/http"

// route is one line of the table.
type route struct {
	method, path string
	who          audience
	handle       func(*Desk, *request) error
	stream       bool // answers for as long as the page is open

	// Of a POST: the action by which the audit trail knows it. The change itself writes
	// the line when it is done; the wrapper writes it when it is denied.
	action string
	// used answers a form that was sent before; nil says so on a page of its own.
	used func(*Desk, *request) error
	// keep stores what was typed when the session is over.
	keep func(*Desk, *request) error
	// unbound forms have no session to be bound to: signing in.
	unbound bool
	// draft forms may be sent again and again: only what is typed changes.
	draft bool
}

var routes = []route{
	// Coming and going.
	{method: http.MethodGet, path: "/sign-in", who: anyone, handle: (*Desk).signInPage},
	{method: http.MethodPost, path: "/sign-in", who: anyone, handle: (*Desk).signIn, action: "sign_in", unbound: true},
	{method: http.MethodPost, path: "/sign-out", who: somebody, handle: (*Desk).signOut, action: "sign_out"},
	{method: http.MethodGet, path: "/enter/:link", who: anyone, handle: (*Desk).linkPage},
	{method: http.MethodPost, path: "/enter/:link", who: anyone, handle: (*Desk).useLink, action: "sign_in", unbound: true},

	// The queue and one effect.
	{method: http.MethodGet, path: "/", who: reader, handle: (*Desk).queue},
	{method: http.MethodGet, path: "/effects/:id", who: reader, handle: (*Desk).effect},
	{method: http.MethodGet, path: "/effects/:id/arguments.json", who: reader, handle: (*Desk).arguments},
	{method: http.MethodGet, path: "/effects/:id/result.json", who: reader, handle: (*Desk).result},
	{method: http.MethodPost, path: "/effects/:id/draft", who: decider, handle: (*Desk).saveDraft, action: "draft.save", draft: true},
	{method: http.MethodPost, path: "/effects/:id/review", who: decider, handle: (*Desk).review, action: "effect.review", keep: (*Desk).keepDraft, draft: true},
	{method: http.MethodGet, path: "/effects/:id/confirm", who: decider, handle: (*Desk).confirm},
	{method: http.MethodPost, path: "/effects/:id/decision", who: decider, handle: (*Desk).decide, action: "effect.decide", used: (*Desk).decidedBefore, keep: (*Desk).keepDraft},
	{method: http.MethodPost, path: "/effects/:id/lookup", who: decider, handle: (*Desk).checkNow, action: "effect.look_up", used: (*Desk).backToEffect, keep: (*Desk).keepDraft},
	{method: http.MethodPost, path: "/effects/:id/undo", who: decider, handle: (*Desk).undo, action: "effect.undo", used: (*Desk).backToEffect},
	{method: http.MethodPost, path: "/effects/:id/send-back", who: decider, handle: (*Desk).sendBack, action: "effect.send_back", used: (*Desk).backToEffect},
	{method: http.MethodPost, path: "/effects/:id/acknowledge", who: decider, handle: (*Desk).acknowledge, action: "effect.acknowledge", used: (*Desk).backToEffect},
	{method: http.MethodPost, path: "/effects/:id/files", who: decider, handle: (*Desk).addFile, action: "effect.file", used: (*Desk).backToEffect},
	{method: http.MethodGet, path: "/effects/:id/files/:file", who: reader, handle: (*Desk).file},
	{method: http.MethodGet, path: "/effects.csv", who: reader, handle: (*Desk).effectsCSV, stream: true},

	// Many at once.
	{method: http.MethodPost, path: "/bulk", who: decider, handle: (*Desk).freeze, action: "bulk.freeze"},
	{method: http.MethodGet, path: "/bulk/:set", who: reader, handle: (*Desk).bulkPage},
	{method: http.MethodPost, path: "/bulk/:set/order", who: decider, handle: (*Desk).orderBulk, action: "bulk.order", used: (*Desk).backToBulk},
	{method: http.MethodPost, path: "/bulk/:set/undo", who: decider, handle: (*Desk).undoBulk, action: "bulk.undo", used: (*Desk).backToBulk},

	// Lists.
	{method: http.MethodGet, path: "/decided", who: reader, handle: (*Desk).decided},
	{method: http.MethodGet, path: "/runs", who: reader, handle: (*Desk).runs},
	{method: http.MethodGet, path: "/runs/:id", who: reader, handle: (*Desk).run},
	{method: http.MethodGet, path: "/tools", who: reader, handle: (*Desk).tools},
	{method: http.MethodGet, path: "/observe", who: reader, handle: (*Desk).observe},
	{method: http.MethodPost, path: "/tools/lookup", who: tester, handle: (*Desk).tryLookup, action: "lookup.test"},
	{method: http.MethodGet, path: "/events", who: reader, handle: (*Desk).events, stream: true},

	// Money owed in both directions.
	{method: http.MethodGet, path: "/refunds", who: reader, handle: (*Desk).refunds},
	{method: http.MethodGet, path: "/refunds.csv", who: reader, handle: (*Desk).refundsCSV, stream: true},
	{method: http.MethodGet, path: "/refunds/:id", who: reader, handle: (*Desk).refundPage},
	{method: http.MethodGet, path: "/refunds/:id/confirm", who: finance, handle: (*Desk).refundConfirm},
	{method: http.MethodPost, path: "/refunds/:id/act", who: finance, handle: (*Desk).refundDo, action: "refund.act", used: (*Desk).backToRefund},
	{method: http.MethodGet, path: "/recoveries", who: reader, handle: (*Desk).recoveries},
	{method: http.MethodGet, path: "/recoveries.csv", who: reader, handle: (*Desk).recoveriesCSV, stream: true},
	{method: http.MethodGet, path: "/recoveries/:id", who: reader, handle: (*Desk).recoveryPage},
	{method: http.MethodGet, path: "/recoveries/:id/confirm", who: finance, handle: (*Desk).recoveryConfirm},
	{method: http.MethodPost, path: "/recoveries/:id/act", who: finance, handle: (*Desk).recoveryDo, action: "recovery.act", used: (*Desk).backToRecovery},
	{method: http.MethodGet, path: "/money", who: reader, handle: (*Desk).money},
	{method: http.MethodGet, path: "/journal.csv", who: reader, handle: (*Desk).journalCSV, stream: true},
	{method: http.MethodGet, path: "/payments", who: reader, handle: (*Desk).payments},
	{method: http.MethodGet, path: "/orders/:id", who: reader, handle: (*Desk).orderPage},
	{method: http.MethodGet, path: "/orders/:id/confirm", who: finance, handle: (*Desk).orderConfirm},
	{method: http.MethodPost, path: "/orders/:id/act", who: finance, handle: (*Desk).orderDo, action: "order.act", used: (*Desk).backToOrder},
	{method: http.MethodGet, path: "/transfers/:id", who: reader, handle: (*Desk).transferPage},
	{method: http.MethodGet, path: "/transfers/:id/confirm", who: finance, handle: (*Desk).transferConfirm},
	{method: http.MethodPost, path: "/transfers/:id/act", who: finance, handle: (*Desk).transferDo, action: "transfer.act", used: (*Desk).backToTransfer},

	// What endpoints are told.
	{method: http.MethodGet, path: "/deliveries", who: reader, handle: (*Desk).deliveries},
	{method: http.MethodGet, path: "/deliveries/:delivery", who: reader, handle: (*Desk).delivery},
	{method: http.MethodPost, path: "/deliveries/:delivery/replay", who: decider, handle: (*Desk).replay, action: "delivery.replay", used: (*Desk).backToDelivery},

	// The installation.
	{method: http.MethodGet, path: "/health", who: reader, handle: (*Desk).health},
	{method: http.MethodPost, path: "/health/gap/acknowledge", who: admin, handle: (*Desk).acknowledgeGap, action: "gap.acknowledge"},
	{method: http.MethodPost, path: "/health/gap/end", who: admin, handle: (*Desk).endGap, action: "gap.end"},
	{method: http.MethodPost, path: "/health/copy/adopt", who: admin, handle: (*Desk).adopt, action: "copy.adopt"},
	{method: http.MethodPost, path: "/health/file/acknowledge", who: admin, handle: (*Desk).acknowledgeFile, action: "logfile.acknowledge"},
	{method: http.MethodGet, path: "/audit", who: auditor, handle: (*Desk).auditPage},
	{method: http.MethodGet, path: "/audit.csv", who: auditor, handle: (*Desk).auditCSV},
	{method: http.MethodGet, path: "/audit.jsonl", who: auditor, handle: (*Desk).auditJSONL},
	{method: http.MethodGet, path: "/people", who: auditor, handle: (*Desk).people},
	{method: http.MethodPost, path: "/people", who: admin, handle: (*Desk).invite, action: "person.add"},
	{method: http.MethodPost, path: "/people/:person/roles", who: admin, handle: (*Desk).setRoles, action: "person.roles"},
	{method: http.MethodPost, path: "/people/:person/link", who: admin, handle: (*Desk).newLink, action: "person.link"},
	{method: http.MethodPost, path: "/people/:person/disable", who: admin, handle: (*Desk).disable, action: "person.disable"},
	{method: http.MethodPost, path: "/people/:person/enable", who: admin, handle: (*Desk).enable, action: "person.enable"},
	{method: http.MethodGet, path: "/you", who: somebody, handle: (*Desk).you},
	{method: http.MethodPost, path: "/you/tokens", who: somebody, handle: (*Desk).newToken, action: "token.add"},
	{method: http.MethodPost, path: "/you/tokens/:token/revoke", who: somebody, handle: (*Desk).revokeToken, action: "token.revoke"},
	{method: http.MethodPost, path: "/you/zone", who: somebody, handle: (*Desk).setZone, action: "session.zone"},
}
