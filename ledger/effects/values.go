package effects

func (v *Intent) to(o *arrays) {
	o.text("id", v.ID)
	o.number("account_id", v.Account)
	o.number("run_id", v.Run)
	o.bytes("key", v.Key)
	o.text("client_key", v.ClientKey)
	o.text("tool", v.Tool)
	o.number("occurrence", int64(v.Occurrence))
	o.text("arguments", v.Arguments)
	o.bytes("call_digest", v.CallDigest)
	o.text("business_key", v.BusinessKey)
	o.bytes("claim", v.Claim)
	o.bytes("claim_was", v.ClaimWas)
	o.yes("call_claim", v.CallClaim)
	o.quote("summary", v.Summary) // NOT NULL
	o.text("amount", v.Amount)
	o.text("currency", v.Currency)
	if v.Decimals != nil {
		o.number("decimals", int64(*v.Decimals))
	}
	o.text("amount_problem", v.AmountProblem)
	o.text("call_id", v.CallID)
	o.text("client_time", v.ClientTime)
	o.text("context", v.Context)
	o.text("repeat_of", v.RepeatOf)
	o.time("opened_at", v.OpenedAt)
}

// standing writes the columns that change. An event leaves out what is false or 0; a
// row may not, its columns are NOT NULL.
func (v *Standing) to(o sink, whole bool) {
	o.text("state", string(v.State))
	o.text("why", string(v.Why))
	o.number("version", v.Version)
	o.number("attempts", int64(v.Attempts))
	o.number("fence", v.Fence)
	o.time("deadline", v.Deadline)
	o.time("moment", v.Moment)
	if whole || v.Gap {
		o.yes("gap", v.Gap)
	}
	o.text("decided_by", string(v.DecidedBy))
	o.text("decided_from", string(v.DecidedFrom))
	o.text("decision", v.Decision)
	o.text("proposal", v.Proposal)
	if whole || v.Early {
		o.yes("early", v.Early)
	}
	o.time("release_at", v.ReleaseAt)
	if whole || v.Released {
		o.yes("released", v.Released)
	}
	o.time("used_at", v.UsedAt)
	o.text("reference", v.Reference)
	o.text("same_as", v.SameAs)
	if v.ResultSize != 0 {
		o.number("result_size", v.ResultSize)
	}
	o.bytes("result_digest", v.ResultDigest)
	if whole || v.Contradictions != 0 {
		o.number("contradictions", int64(v.Contradictions))
	}
	o.time("waiting_since", v.WaitingSince)
	o.time("changed_at", v.ChangedAt)
}

func (v *Texts) to(o *arrays) {
	o.yes("set_texts", v.Set)
	o.text("result", v.Result)
	o.text("error", v.Error)
}

func (v *Attempt) to(o *arrays) {
	o.text("effect_id", v.Effect)
	o.number("number", int64(v.Number))
	o.number("fence", v.Fence)
	o.text("attempt_id", v.AttemptID)
	o.number("epoch", v.Epoch)
	o.time("begun_at", v.BegunAt)
	o.time("deadline", v.Deadline)
}

func (v *Event) to(o *arrays) {
	o.time("at", v.At)
	o.number("run_id", v.Run)
	o.text("effect_id", v.Effect)
	if v.Version != 0 {
		o.number("version", v.Version)
	}
	o.text("kind", v.Kind)
	o.text("data", v.Data)
	o.bytes("digest", v.Digest)
}
