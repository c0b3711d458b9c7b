package api

import (
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"quittance/client"
	"quittance/web"
)

// route is one line of the table: how it is met, who may call it, what it takes and
// answers. Types are given as zero values.
type route struct {
	method, path string
	who          caller
	does         string
	query        []parameter
	in           any // nil: no body
	answers      answers
	handle       func(*API, echo.Context, identity) error
}

// answers are the bodies by status; nil is an answer without one. Problems are not
// listed: every route may answer one.
type answers map[int]any

// parameter is one of the query.
type parameter struct {
	name, does string
	whole      bool // a whole number
}

// maxWait is the longest a long poll is held. The client asks again.
const maxWait = time.Minute

// claimLookupsPath is a long poll whose wait stands in its body.
const claimLookupsPath = "/v1/lookups/claim"

// timeout leaves a long poll its wait.
func (r route) timeout() time.Duration {
	if r.path == claimLookupsPath || slices.ContainsFunc(r.query, func(q parameter) bool { return q.name == "wait" }) {
		return maxWait + web.DefaultTimeout
	}
	return web.DefaultTimeout
}

var wait = parameter{name: "wait", does: "How long to wait while the run is paused, such as 30s; at most 60s."}

var readyWait = parameter{name: "wait", does: "How long to wait for a run to become ready, such as 30s; at most 60s."}

var queueFilters = []parameter{
	{name: "account", does: "Only this account's."},
	{name: "agent", does: "Only this kind of agent's."},
	{name: "tool", does: "Only this tool's."},
	{name: "run_id", does: "Only this run's."},
	{name: "business_key", does: "Only with this business key, whole and exact."},
	{name: "state", does: "interrupted, held, contradicted, second (waits for a second person), or confirm (decided too early)."},
	{name: "cursor", does: "next_cursor of the page before."},
	{name: "limit", does: "1 to 200; 50 when absent.", whole: true},
}

var observeFilters = []parameter{
	{name: "account", does: "Only this account's."},
	{name: "tool", does: "Only this tool's."},
	{name: "since", does: "Only those from a time of RFC 3339 on, or of the last 7d, 36h."},
	{name: "cursor", does: "next_cursor of the page before."},
	{name: "limit", does: "1 to 200; 50 when absent.", whole: true},
}

var deliveryFilters = []parameter{
	{name: "endpoint", does: "Only to this endpoint."},
	{name: "state", does: "due, delivered, overtaken or given_up."},
	{name: "cursor", does: "next_cursor of the page before."},
	{name: "limit", does: "1 to 200; 50 when absent.", whole: true},
}

var routes = []route{
	// Runs.
	{http.MethodPut, "/v1/runs/:run_id", agent, "Take the lease of a run, which is opened when it is new", nil,
		client.OpenRequest{}, answers{200: client.RunLease{}}, (*API).openRun},
	{http.MethodGet, "/v1/runs/:run_id", agent, "Read a run and its open effects", []parameter{wait},
		nil, answers{200: client.RunView{}}, (*API).getRun},
	{http.MethodPost, "/v1/runs/:run_id/heartbeat", agent, "Renew the lease", nil,
		client.LeaseRequest{}, answers{200: client.LeaseAnswer{}}, (*API).heartbeat},
	{http.MethodPost, "/v1/runs/:run_id/release", agent, "Give the lease back", nil,
		client.LeaseRequest{}, answers{200: client.LeaseAnswer{}}, (*API).release},
	{http.MethodPost, "/v1/runs/:run_id/close", agent, "End the run for good", nil,
		client.CloseRequest{}, answers{200: client.LeaseAnswer{}}, (*API).closeRun},
	{http.MethodPut, "/v1/runs/:run_id/checkpoints/:turn", agent, "Save the state after a completed turn", nil,
		client.SaveCheckpoint{}, answers{204: nil}, (*API).saveCheckpoint},
	{http.MethodGet, "/v1/runs/:run_id/checkpoint", agent, "Read the last checkpoint", nil,
		nil, answers{200: client.Checkpoint{}}, (*API).getCheckpoint},
	{http.MethodPost, "/v1/runs/claim", agent, "Take the lease of any run that is ready", []parameter{readyWait},
		client.ClaimRequest{}, answers{200: client.RunLease{}, 204: nil}, (*API).claimRun},

	// Effects.
	{http.MethodPost, "/v1/effects", agent, "Begin: record the intent before the call is made", nil,
		client.BeginRequest{}, answers{201: client.BeginAnswer{}, 200: client.BeginAnswer{}}, (*API).begin},
	{http.MethodPost, "/v1/effects/:effect_id/finish", agent, "Record what became of an attempt", nil,
		client.FinishRequest{}, answers{200: client.FinishAnswer{}}, (*API).finish},
	{http.MethodPost, "/v1/effects/finish", agent, "Record what became of an attempt, named by its key or its call", nil,
		client.FinishRequest{}, answers{200: client.FinishAnswer{}}, (*API).finishByKey},
	{http.MethodPost, "/v1/effects/batch", agent, "Up to 500 begins and finishes, an answer each", nil,
		client.Batch{}, answers{200: client.BatchAnswers{}}, (*API).batch},
	{http.MethodGet, "/v1/effects/:effect_id", agentOrReader, "Read everything that is known about an effect", nil,
		nil, answers{200: client.EffectView{}}, (*API).getEffect},

	// What is told instead of asked.
	{http.MethodPost, claimLookupsPath, agent, "Take questions that workers of a pool answer", nil,
		client.ClaimLookups{}, answers{200: client.LookupQuestions{}}, (*API).claimLookups},
	{http.MethodPost, "/v1/lookups/:lookup_id/answer", agent, "Say what was seen, which is judged here", nil,
		client.LookupAnswer{}, answers{200: client.LookupVerdict{}}, (*API).answerLookup},
	{http.MethodPost, "/v1/inbox/:name", anyone, "Receive an event that its sender signed", nil,
		map[string]any{}, answers{200: client.InboxAnswer{}}, (*API).receive},

	// Payment ids, orders and transfers.
	{http.MethodPost, "/v1/payments", agent, "Claim a payment id, or ask what became of it", nil,
		client.PaymentRequest{}, answers{201: client.PaymentAnswer{}, 200: client.PaymentAnswer{}}, (*API).claimPayment},
	{http.MethodGet, "/v1/payments/:payment_id", agent, "Read a payment", []parameter{{name: "gateway", does: "Within which the id is unique."}},
		nil, answers{200: client.Payment{}}, (*API).getPayment},
	{http.MethodPost, "/v1/payments/:payment_id/order", agent, "Create the payment's order", nil,
		client.PaymentOrder{}, answers{201: client.Order{}}, (*API).orderPayment},
	{http.MethodPost, "/v1/payments/:payment_id/work", agent, "Record the work before it is done, as an effect", nil,
		client.PaymentWork{}, answers{201: client.BeginAnswer{}, 200: client.BeginAnswer{}}, (*API).workPayment},
	{http.MethodPost, "/v1/payments/:payment_id/broadcast", agent, "Record the payment before it is sent to its rail", nil,
		client.PaymentBroadcast{}, answers{200: client.Payment{}}, (*API).broadcastPayment},
	{http.MethodPost, "/v1/payments/:payment_id/finish", agent, "Record what became of the payment, and freeze its answer", nil,
		client.PaymentFinish{}, answers{200: client.Payment{}}, (*API).finishPayment},
	{http.MethodPost, "/v1/payments/:payment_id/cancel", agent, "End the order of a payment, while nothing sent for it may land", nil,
		client.PaymentCancel{}, answers{200: client.Order{}}, (*API).cancelPayment},
	{http.MethodGet, "/v1/orders/:order_id", agentOrReader, "Read an order, its transfers and what is owed back", nil,
		nil, answers{200: client.Order{}}, (*API).getOrder},
	{http.MethodPost, "/v1/transfers", agent, "Post one movement on a rail", nil,
		client.Transfer{}, answers{201: client.TransferAnswer{}, 200: client.TransferAnswer{}}, (*API).postTransfer},
	{http.MethodPost, "/v1/reads", agent, "Ask whether a read was paid for already, moments ago", nil,
		client.ReadRequest{}, answers{201: client.ReadAnswer{}, 200: client.ReadAnswer{}}, (*API).askRead},
	{http.MethodPost, "/v1/reads/:read_id/finish", agent, "Store the answer of a paid read", nil,
		client.FinishRead{}, answers{204: nil}, (*API).finishRead},

	// People.
	{http.MethodGet, "/v1/queue", reader, "What waits for a decision", queueFilters,
		nil, answers{200: client.QueuePage{}}, (*API).queue},
	{http.MethodPost, "/v1/effects/:effect_id/decision", decider, "Decide an effect", nil,
		client.DecisionRequest{}, answers{200: client.DecisionAnswer{}, 202: client.DecisionAnswer{}}, (*API).decide},
	{http.MethodPost, "/v1/decisions", decider, "Decide several effects, an answer each", nil,
		client.Decisions{}, answers{200: client.DecisionAnswers{}}, (*API).decideAll},
	{http.MethodPost, "/v1/effects/:effect_id/evidence", decider, "Record what was seen, without deciding", nil,
		client.EvidenceRequest{}, answers{200: client.EffectChanged{}}, (*API).addEvidence},
	{http.MethodPost, "/v1/effects/:effect_id/lookup", decider, "Ask the downstream now", nil,
		nil, answers{200: client.EffectChanged{}}, (*API).lookUp},
	{http.MethodPost, "/v1/effects/:effect_id/undo", decider, "Take back a decision that is not used yet", nil,
		client.UndoRequest{}, answers{200: client.EffectChanged{}}, (*API).undo},

	// Tools that are only observed.
	{http.MethodGet, "/v1/observe", reader, "What enforcing would have done with the calls of observed tools", observeFilters[:3],
		nil, answers{200: client.ObserveReport{}}, (*API).observeReport},
	{http.MethodGet, "/v1/observe/calls", reader, "The calls that enforcing would have stopped, latest first", observeFilters,
		nil, answers{200: client.ObservedCalls{}}, (*API).observedCalls},

	// What endpoints are told.
	{http.MethodGet, "/v1/deliveries", reader, "The log of deliveries, latest first", deliveryFilters,
		nil, answers{200: client.Deliveries{}}, (*API).listDeliveries},
	{http.MethodGet, "/v1/deliveries/:delivery_id", reader, "Read a delivery and its attempts", nil,
		nil, answers{200: client.DeliveryView{}}, (*API).getDelivery},
	{http.MethodPost, "/v1/deliveries/:delivery_id/replay", decider, "Send a delivery again, under its id", nil,
		nil, answers{200: client.DeliveryView{}}, (*API).replayDelivery},

	// Log files that agents keep.
	{http.MethodGet, "/v1/logfiles", reader, "The log files that are read, those that were changed first", nil,
		nil, answers{200: client.LogFiles{}}, (*API).logFiles},
	{http.MethodPost, "/v1/logfiles/:log_file_id/acknowledge", administrator, "Acknowledge that a log file was changed: everything open in its runs becomes unknown", nil,
		client.LogFileNote{}, answers{200: client.LogFile{}}, (*API).acknowledgeFile},
	{http.MethodPost, "/v1/logfiles/:log_file_id/close", decider, "End a run that lives in a log file", nil,
		client.CloseLogFileRun{}, answers{200: client.LogFile{}}, (*API).closeFileRun},

	// The log.
	{http.MethodGet, "/v1/log", reader, "Whether the log is known to have lost events", nil,
		nil, answers{200: client.LogState{}}, (*API).gap},
	{http.MethodPost, "/v1/log/acknowledge", administrator, "Acknowledge that events are lost: everything open becomes unknown", nil,
		client.LogNote{}, answers{200: client.LogState{}}, (*API).acknowledgeGap},
	{http.MethodPost, "/v1/log/end", administrator, "End an acknowledged gap: new effects run again", nil,
		client.LogNote{}, answers{200: client.LogState{}}, (*API).endGap},

	// The server itself.
	{http.MethodGet, "/healthz", anyone, "Whether the process lives", nil,
		nil, answers{200: Health{}}, (*API).healthz},
	{http.MethodGet, "/readyz", anyone, "Whether the server can work", nil,
		nil, answers{200: Health{}}, (*API).readyz},
	{http.MethodGet, "/openapi.json", anyone, "This description", nil,
		nil, answers{200: map[string]any{}}, (*API).describeAPI},
}
