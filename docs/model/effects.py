#!/usr/bin/env python3
"""Explicit-state model checker for the effect state machine (../state_machine.md, and what look-ups may prove).

    python3 effects.py list                 configurations, fixes and mutants
    python3 effects.py check NAME [+fix..] [-mutant..]   one configuration; "+all" applies every fix
    python3 effects.py suite [+all]         every configuration
    python3 effects.py mutants [NAME..]     every mutant, on the fixed design
    python3 effects.py needed [NAME..]      every fix left out, one at a time
    python3 effects.py table [+all]         property P5: rows per (state, event)
"""
import sys, time
from array import array
from collections import deque

# ---- effect fields
ST, WHY, BY, FRM, REL, USED, REF, CON, NATT, FENCE, LAST, EARLY, GAPD, ASIDE = range(14)
NEW = ('N', '', '', None, 1, 0, 0, 0, 0, 0, -1, 0, 0, ())
# ---- attempt fields (global list in order of begin); request status: - answer lost, P may land, T paid, F refused, X gone
AE, AF, PH, RS, AR, FR = range(6)
# ---- payment: effect, visible, late (landed after deadline + lands_within)
# ---- run: lease alive, closed, an earlier holder exists
# ---- misc: key life 0 fresh 1 tail 2 dead, snapshot, gap 0 none 1 unnoticed 2 noticed 3 acknowledged

FIXES = {
    'allow_rel': 'allow counts a cancelled overlap only once its stop is released',
    'recheck_lag': 'the re-check is asked after visible_after too',
    'no_silence': 'silence releases only what was decided after deadline + lands_within + visible_after',
    'undo_claim': 'undo of a stop takes the claim again, else held',
    'key_begin': 'a same_key permission is checked against the key life again at begin',
    'any_other_ref': 'another reference, or more than one free hit, contradicts taken whether used or not',
    'inflight_multi': 'more than one free hit while an attempt is open contradicts',
    'cancel_contra': 'evidence taken for a cancelled effect whose claim has moved: contradiction, not held',
    'overlap_contra': 'a reopened or contradicted overlap withdraws an unused allow',
    'gap_deadline': 'after an acknowledged gap the deadline counts from the acknowledgement',
    'gap_terminal': 'after a gap, failed and cancelled effects are interrupted too',
    'held_taken': 'held with an earlier attempt: late finish or look-up taken is accepted (taken)',
    'undo_permit': 'undo never brings a permission back: interrupted (held if it was allowed)',
    'close_key': 'a run cannot close while an effect is cleared (same_key)',
    'multi_closed': 'more than one free hit contradicts failed and cancelled too',
    'overlap_two': 'taken while the claim is held by another begun effect: contradiction',
    'no_attempt': 'no re-check and no look-up verdict for an effect with no attempt (outside a gap)',
    'gap_fence': 'effects first seen after a gap start above the jump too',
    'earlier_withdraw': 'taken by any attempt but the last withdraws an unused permission (also an allow where it is a contradiction)',
    'other_taken': 'taken by an attempt that is not the last (same vendor key, or hidden by a gap) counts against taken, failed and cancelled',
    'ref_owned': 'taken with a reference that proves another effect: interrupted, and an unused not_taken or same_key is withdrawn',
    'early_withdraw': 'a hit in a look-up asked before the last attempt began withdraws an unused permission',
    'same_as_stays': 'a late failed does not reopen or contradict a same_as',
    'cancel_both': 'evidence taken for a cancelled effect whose claim has moved: held, and a contradiction where the other was begun (instead of cancel_contra)',
    'set_aside': 'the re-check ignores hits that the decision named as not ours',
}
OPTIONAL = {'inflight_multi', 'gap_terminal', 'held_taken',     # found not to be needed; not part of +all
            'cancel_contra'}                                    # replaced by cancel_both
MUTANTS = {
    'fence': 'finish accepted whatever its fence', 'lease': 'begin accepted without a valid lease',
    'epoch': 'an earlier holder keeps a valid token after take-over', 'claim_recheck': 'cleared begin does not re-read the claim',
    'claim': 'no overlap check at all', 'release_wait': 'release does not wait for deadline + lands_within',
    'recheck': 'no look-up before release', 'attempt_id': 'any attempt_id gets the first answer again',
    'attempt_id_retry': 'the same attempt_id is refused as in flight', 'ref_unique': 'a reference may prove two effects',
    'asked_n': 'a look-up speaks for attempts begun after it was asked', 'late_wait': 'absence proof ignores lands_within',
    'fence_jump': 'fences do not jump after a restore', 'vendor_key': 'vendor key differs per attempt',
    'withdraw': 'a hit does not withdraw an unused permission', 'stop_frees': 'a stop frees the claim before its release',
    'permit_once': 'a permission is not used up by begin',
}

class Cfg:
    d = dict(runs=(0,), maxatt=2, bank='B', late=0, wrong=0, refuse=0, same_key=0, life=0, lost=0, noref=0, carry=None,
             proof=1, silence=1, async_lk=0, same_logical=1, restore=0, undo=1, expire=1, person=1, release=1, blind=0)
    def __init__(self, name, **kw):
        self.name = name
        for k, v in {**self.d, **kw}.items(): setattr(self, k, v)
        if self.carry is None: self.carry = 1 if self.bank == 'A' else 0
        self.fix, self.mut = set(), set()

class M:
    """A mutable copy of a state."""
    __slots__ = ('E', 'R', 'claim', 'A', 'P', 'lk', 'misc', 'flag')
    def __init__(self, s):
        self.E, self.R, self.claim, self.A, self.P, self.lk, self.misc = (list(s[0]), list(s[1]), s[2], list(s[3]), list(s[4]), s[5], list(s[6]))
        self.flag = None
    def e(self, i, **kw):
        x = list(self.E[i])
        for k, v in kw.items(): x[globals()[k]] = v
        self.E[i] = tuple(x)
    def s(self): return (tuple(self.E), tuple(self.R), self.claim, tuple(self.A), tuple(self.P), self.lk, tuple(self.misc))

def sub(t, i, v): return t[:i] + (v,) + t[i+1:]

class Model:
    def __init__(self, c):
        self.c, self.n = c, len(c.runs)
        self.nr = max(c.runs) + 1
    def init(self):
        return ((NEW,) * self.n, ((0, 0, 0),) * self.nr, -1, (), (), None, (0, None, 0))

    # ---- small predicates
    def paused(self, m, r):
        for i, e in enumerate(m.E):
            if self.c.runs[i] != r: continue
            if e[ST] in 'UH' or e[CON] == 1: return True
            if e[ST] in 'CTX' and not e[REL]: return True
        return False
    def owned(self, m, ref, but):
        return ref > 0 and any(i != but and e[REF] == ref and e[ST] == 'T' for i, e in enumerate(m.E))
    def free_hits(self, m, i, hits):
        c = self.c
        out = []
        for h in hits:
            if c.carry and m.P[h-1][0] != i: continue              # the hit carries another effect's key
            if 'ref_unique' not in c.mut and self.owned(m, h, i): continue
            out.append(h)
        return out
    def landed_safe(self, m, i):
        """deadline + lands_within of the last attempt, as the database knows it"""
        e = m.E[i]
        if 'gap_deadline' in self.c.fix and e[GAPD]:
            if any(a[AE] == i and a[PH] < 2 for a in m.A): return False
        return e[LAST] < 0 or m.A[e[LAST]][PH] == 2
    def visible(self, m): return frozenset(j+1 for j, p in enumerate(m.P) if p[1])
    def lag_over(self, m): return all(p[1] or p[2] for p in m.P)
    def paid(self, m, i): return [j+1 for j, p in enumerate(m.P) if p[0] == i]

    # ---- claims
    def drop_claim(self, m, i):
        if m.claim != i: return
        for k in reversed(range(self.n)):
            e = m.E[k]
            if k != i and not (e[ST] in 'NF' or (e[ST] == 'X' and e[REL])): m.claim = k; return
        e = m.E[i]
        if e[ST] in 'FX': m.claim = -1
    def reclaim(self, m, i):
        if m.claim < 0: m.claim = i
        return m.claim == i
    def reopened(self, m, i):
        """effect i became unknown or contradicted: an unused allow given because it was closed"""
        if 'overlap_contra' in self.c.fix:
            for k, e in enumerate(m.E):
                if k != i and e[ST] == 'C' and e[WHY] == 'a':
                    m.e(k, ST='H', WHY='', BY='', FRM=None, REL=1)
                    self.claim_back(m, k)
    def claim_back(self, m, k):
        if m.claim == k:
            for j in reversed(range(self.n)):
                e = m.E[j]
                if j != k and not (e[ST] in 'NF' or (e[ST] == 'X' and e[REL])): m.claim = j; return

    def contra(self, m, i):
        if m.E[i][CON] != 1: m.e(i, CON=1)
        self.reopened(m, i)

    # ---- the table: look-up evidence
    def evidence0(self, m, i, asked, hits, absent):
        c, e = self.c, m.E[i]
        if 'no_attempt' in c.fix and not e[NATT] and not e[GAPD]: return
        free = self.free_hits(m, i, hits)
        if asked < e[NATT] and 'asked_n' not in c.mut:
            if len(free) > 1: self.contra(m, i)
            if e[ST] == 'C' and free and e[WHY] in 'nk' and 'early_withdraw' in c.fix: self.interrupt(m, i); self.reopened(m, i)
            return
        st = e[ST]
        others_open = [k for k, o in enumerate(m.E) if k != i and o[ST] in 'IUC']
        blind_other = any(k != i and o[ST] == 'T' and o[REF] <= 0 for k, o in enumerate(m.E))
        proves = len(free) == 1 and (c.carry or not (others_open or blind_other))
        if st == 'U':
            if proves: m.e(i, ST='T', BY='q', FRM=('U', '', '', 1), REL=1, USED=0, REF=free[0])
            elif not free and absent and c.proof:
                m.e(i, ST='C', WHY='n', BY='q', FRM=('U', '', '', 1), REL=1, USED=0)
        elif st == 'C':
            if e[WHY] in 'nk' and free and 'withdraw' not in c.mut: m.e(i, ST='U', WHY='', BY='', FRM=None, REL=1)
        elif st == 'T':
            other = (e[REF] > 0 and any(h != e[REF] for h in free))
            if 'any_other_ref' in c.fix and (other or (len(free) > 1 and not (e[REF] > 0 and free == [e[REF]]))): self.contra(m, i)
            elif e[USED] and other: self.contra(m, i)
            elif absent and not free and e[REF] != -2 and e[NATT] and c.proof:
                if e[USED]: self.contra(m, i)
                elif e[BY] in 'pq': m.e(i, ST='U', BY='', FRM=None, REL=1, REF=0)
        elif st in 'FX' and 'multi_closed' in c.fix and len(free) > 1 and e[NATT]: self.contra(m, i)
        elif st == 'F':
            if proves or (free and c.carry): self.contra(m, i)
            elif free and e[NATT] and not others_open and not blind_other: self.contra(m, i)
        elif st == 'X':
            if proves and e[NATT]: self.x_taken(m, i)
        elif st == 'H':
            if 'held_taken' in c.fix and e[NATT] and proves: m.e(i, ST='T', BY='q', FRM=('H', '', '', 1), REL=1, USED=0, REF=free[0])
        elif st == 'I':
            if 'inflight_multi' in c.fix and len(free) > 1: self.contra(m, i)
    def post(self, m, i):
        e, f = m.E[i], self.c.fix
        if 'undo_claim' in f and m.claim < 0 and e[ST] in 'IUCTH': m.claim = i
        if 'overlap_two' in f and e[ST] == 'T' and e[REF] != -2 and m.claim not in (-1, i) and m.E[m.claim][NATT] and m.E[m.claim][ST] in 'IUCT': self.contra(m, i)
    def evidence(self, m, i, *a):
        st = m.E[i][ST]; self.evidence0(m, i, *a)
        if m.E[i][ST] != st: self.post(m, i)
    def finish(self, m, k):
        i = m.A[k][AE]; st = m.E[i][ST]; self.finish0(m, k)
        if m.E[i][ST] != st: self.post(m, i)
    def x_taken(self, m, i):
        e = m.E[i]
        if e[USED] or e[BY] != 'p': self.contra(m, i)
        else:
            if self.reclaim(m, i): m.e(i, ST='U', BY='', FRM=None, REL=1, USED=0); self.reopened(m, i)
            elif 'cancel_contra' in self.c.fix: self.contra(m, i)
            else:
                if 'cancel_both' in self.c.fix and m.E[m.claim][NATT] and m.E[m.claim][ST] in 'IUHCT': self.contra(m, i)
                m.e(i, ST='H', BY='', FRM=None, REL=1, USED=0)

    # ---- the table: finish of attempt k (word T or F)
    def finish0(self, m, k):
        c, a = self.c, m.A[k]
        i, e = a[AE], m.E[a[AE]]
        ref = 0 if a[RS] == 3 else (-1 if c.noref else a[AR])
        if e[ST] == 'N': return                                     # kept: finish without an intent
        last = e[NATT] > 0 and a[AF] == e[FENCE] if e[LAST] >= 0 else False
        if 'fence' in c.mut: last = True
        if not last:
            if a[RS] == 2:
                same = c.bank == 'A' and (e[WHY] == 'k' or c.same_key) and len(self.paid(m, i)) == 1
                later = e[NATT] > 0 and (e[LAST] >= 0 and k < e[LAST])
                if later and not same:
                    self.contra(m, i)
                    if e[ST] == 'C' and 'earlier_withdraw' in c.fix: self.interrupt(m, i); self.reopened(m, i)
                elif e[ST] == 'C' and e[WHY] in 'nk' and 'earlier_withdraw' in c.fix: self.interrupt(m, i); self.reopened(m, i)
                elif e[ST] in 'FX' and (not later or 'other_taken' in c.fix): self.x_taken(m, i) if e[ST] == 'X' else self.contra(m, i)
                elif e[ST] == 'T' and ref > 0 and e[REF] > 0 and ref != e[REF] and 'other_taken' in c.fix: self.contra(m, i)
            return
        st = e[ST]
        if a[RS] == 2 and 'ref_unique' not in c.mut and self.owned(m, ref, i):
            if 'ref_owned' not in c.fix: return
            if st in 'IU' or st == 'C' and e[WHY] in 'nk': self.interrupt(m, i); self.reopened(m, i)
            if st in 'IUHC': return                                 # F12, F13, F14 and F9 look at it all the same
        if k != e[LAST] and st in 'IUCT' and m.A[e[LAST]][AF] == a[AF] and not ('attempt_id' in c.mut) or 'fence' in c.mut and k != e[LAST]: m.flag = 'P9 the finish of one attempt closes another'
        if st in 'IU':
            if a[RS] == 2: m.e(i, ST='T', BY='w' if st == 'I' else 'l', FRM=None, REL=1, USED=1, REF=ref)
            else: m.e(i, ST='F', BY='w' if st == 'I' else 'l', FRM=None, REL=1, USED=1, REF=0); self.drop_claim(m, i)
        elif st == 'C':
            if a[RS] == 2: m.e(i, ST='T', WHY='', BY='l', FRM=None, REL=1, USED=1, REF=ref)
        elif st == 'T':
            other = a[RS] == 2 and ref > 0 and e[REF] > 0 and ref != e[REF]
            if a[RS] == 3:
                if e[USED]: (self.contra(m, i) if not (e[REF] == -2 and 'same_as_stays' in c.fix) else None)
                elif e[BY] in 'pq' and not (e[REF] == -2 and 'same_as_stays' in c.fix): m.e(i, ST='U', BY='', FRM=None, REL=1, REF=0)
            elif other and (e[USED] or 'any_other_ref' in c.fix): self.contra(m, i)
        elif st == 'F':
            if a[RS] == 2: self.contra(m, i)
        elif st == 'X':
            if a[RS] == 2: self.x_taken(m, i)
        elif st == 'H':
            if a[RS] == 2 and 'held_taken' in c.fix: m.e(i, ST='T', BY='l', FRM=None, REL=1, USED=1, REF=ref)

    def interrupt(self, m, i): m.e(i, ST='U', WHY='', BY='', FRM=None, REL=1, USED=0)

    def attempt(self, m, i, lost):
        e = m.E[i]
        f = e[FENCE] + 1
        m.A.append((i, f, 0, 0 if lost else 1, 0, 1 if m.misc[0] == 0 else 0))
        keep = 'permit_once' in self.c.mut and e[ST] == 'C'
        m.e(i, ST='C' if keep else 'I', WHY=e[WHY] if e[ST] == 'C' else '', BY=e[BY] if keep else '', FRM=e[FRM] if keep else None,
            REL=1, USED=0, NATT=e[NATT]+1, FENCE=f, LAST=len(m.A)-1, EARLY=0, GAPD=0, REF=0)

    # ---- all successors
    def succ(self, s):
        c, out = self.c, []
        E, R, claim, A, P, lk, misc = s
        key, snap, gap = misc
        mut, fix = c.mut, c.fix
        def add(label, m): out.append((label, m.s(), m.flag))
        base = M(s)
        # time
        for k, a in enumerate(A):
            if a[PH] < 2 and (k == 0 or A[k-1][PH] > a[PH] or A[k-1][PH] == 2):
                m = M(s); ph = a[PH] + 1
                rs = a[RS]
                if rs == 0: rs = 4
                if ph == 2 and rs == 1 and not c.late: rs = 4
                m.A[k] = a[:PH] + (ph, rs) + a[AR:]
                e = E[a[AE]]
                if ph == 1 and e[ST] == 'I' and e[LAST] == k: self.interrupt(m, a[AE])
                add('time: attempt f%d of E%d %s' % (a[AF], a[AE]+1, 'passes its deadline' if ph == 1 else 'passes deadline + lands_within'), m)
        if c.life and A:
            if key == 0: m = M(s); m.misc[0] = 1; add('time: a new attempt no longer fits in the key life', m)
            elif key == 1 and all(a[PH] == 2 for a in A if a[FR]): m = M(s); m.misc[0] = 2; add('time: the vendor key dies', m)
        # bank
        for k, a in enumerate(A):
            if a[RS] == 1:
                i = a[AE]
                mine = [j+1 for j, p in enumerate(P) if p[0] == i]
                m = M(s)
                if c.bank == 'A' and mine and key < 2 and 'vendor_key' not in mut: ref = mine[0]
                else: m.P.append((i, 0, 1 if a[PH] == 2 else 0)); ref = len(m.P)
                m.A[k] = a[:RS] + (2, ref) + a[FR:]
                add('bank: request of f%d E%d lands, payment r%d' % (a[AF], i+1, ref), m)
                m = M(s); m.A[k] = a[:RS] + (4,) + a[AR:]; add('net: request of f%d E%d is lost' % (a[AF], i+1), m)
                if c.refuse and not (c.bank == 'A' and mine):
                    m = M(s); m.A[k] = a[:RS] + (3,) + a[AR:]; add('bank: refuses f%d E%d' % (a[AF], i+1), m)
        for j, p in enumerate(P):
            if not p[1]: m = M(s); m.P[j] = (p[0], 1, p[2]); add('bank: r%d becomes visible' % (j+1), m)
        # finishes (also again)
        if gap != 2:
            for k, a in enumerate(A):
                if a[RS] in (2, 3):
                    m = M(s); self.finish(m, k); add('worker of f%d E%d: finish %s' % (a[AF], a[AE]+1, 'taken' if a[RS] == 2 else 'failed'), m)
        # leases, runs
        for r, (alive, closed, stale) in enumerate(R):
            if closed: continue
            mine = [i for i in range(self.n) if c.runs[i] == r]
            if alive:
                m = M(s); m.R[r] = (0, 0, 1)
                for i in mine:
                    if E[i][ST] == 'I': self.interrupt(m, i)
                add('R%d: lease passes or is released' % (r+1), m)
            p = self.paused(base, r)
            if not alive and not p and gap in (0, 1, 3):
                m = M(s); m.R[r] = (1, 0, stale); add('R%d: %s takes the lease' % (r+1, 'next worker' if stale else 'W1'), m)
            who = []
            if alive: who.append(('holder', None))
            if 'lease' in mut and not alive and stale: who.append(('W1 without lease', 'P10 begin accepted from a worker without a valid lease'))
            if 'epoch' in mut and alive and stale: who.append(('earlier holder', 'P10 begin accepted from an earlier holder'))
            if gap == 2: who = []
            for w, flag in who:
                for n, i in enumerate(mine):
                    e, st = E[i], E[i][ST]
                    if n and not (E[mine[n-1]][ST] in 'TFX' and E[mine[n-1]][USED]): continue
                    if st == 'I':
                        k = e[LAST]
                        if A[k][RS] == 0 and w == 'holder' and 'attempt_id_retry' not in mut:
                            m = M(s); m.A[k] = A[k][:RS] + (1,) + A[k][AR:]; add('R%d: begin E%d again, same attempt_id, gets the first answer' % (r+1, i+1), m)
                        if 'attempt_id' in mut and len(A) < c.maxatt + 1 and sum(1 for a in A if a[AE] == i and a[AF] == e[FENCE]) < 2:
                            m = M(s); m.A.append((i, e[FENCE], 0, 1, 0, A[k][FR])); add('R%d: second caller begins E%d, other attempt_id, gets the first answer' % (r+1, i+1), m)
                        continue
                    if p: continue
                    if st == 'N':
                        if i and self.nr == 2 and E[0][ST] == 'N': continue        # symmetry: E1 is the first to begin
                        m = M(s)
                        if gap == 3:
                            self.reclaim(m, i)
                            m.e(i, ST='U', REL=1, GAPD=1, FENCE=10 if 'gap_fence' in fix and 'fence_jump' not in mut else 0); add('R%d: begin E%d in a log gap: interrupted, attempt 0' % (r+1, i+1), m); continue
                        if 'claim' in mut or self.reclaim(m, i):
                            if len(A) >= c.maxatt: out.append(('CUT', None, None)); continue
                            for lost in ((0, 1) if c.lost else (0,)):
                                m2 = M(m.s()); m2.flag = flag; self.attempt(m2, i, lost)
                                if w != 'holder' and not alive: self.interrupt(m2, i)
                                add('R%d: %s begins E%d, proceed f%d%s' % (r+1, w, i+1, m2.E[i][FENCE], ', answer lost' if lost else ''), m2)
                        else: m.e(i, ST='H', REL=1); add('R%d: begin E%d overlaps: held' % (r+1, i+1), m)
                    elif st == 'C' and e[REL]:
                        m = M(s)
                        if e[WHY] == 'k' and 'key_begin' in fix and key: self.interrupt(m, i); add('R%d: begin E%d, key life too short: interrupted' % (r+1, i+1), m); continue
                        if claim != i and not ('claim_recheck' in mut or 'claim' in mut):
                            if claim < 0: m.claim = i
                            else: m.e(i, ST='H', WHY='', BY='', FRM=None, REL=1); add('R%d: begin E%d, claim lost: held' % (r+1, i+1), m); continue
                        if len(A) >= c.maxatt: out.append(('CUT', None, None)); continue
                        for lost in ((0, 1) if c.lost else (0,)):
                            m2 = M(m.s()); m2.flag = flag; self.attempt(m2, i, lost)
                            if w != 'holder' and not alive: self.interrupt(m2, i)
                            add('R%d: %s begins E%d, proceed f%d%s' % (r+1, w, i+1, m2.E[i][FENCE], ', answer lost' if lost else ''), m2)
                    elif st in 'TFX' and e[REL] and not e[USED]:
                        m = M(s); m.e(i, USED=1, FRM=None); add('R%d: begin E%d answered: %s' % (r+1, i+1, {'T': 'replay taken', 'F': 'replay failed', 'X': 'cancelled'}[st]), m)
                if w == 'holder' and not p and not any(E[i][ST] in 'IUH' or ('close_key' in fix and E[i][ST] == 'C' and E[i][WHY] == 'k') for i in mine) and E[mine[0]][ST] != 'N':
                    # an agent closes after its last call came back, or when told to abandon
                    done = all(E[i][ST] in 'TFXC' for i in mine) or any(E[i][ST] == 'X' for i in mine)
                    if done:
                        m = M(s); m.R[r] = (0, 1, stale)
                        for i in mine:
                            if E[i][ST] == 'C': m.e(i, ST='X', WHY='', BY='c', FRM=None, REL=1, USED=1); self.drop_claim(m, i)
                            elif E[i][ST] in 'TFX': m.e(i, USED=1, FRM=None)
                        add('R%d: closed' % (r+1), m)
        # finish unknown
        for i, e in enumerate(E):
            if e[ST] == 'I' and gap != 2: m = M(s); self.interrupt(m, i); add('worker: finish unknown for E%d' % (i+1), m)
        # look-ups: asked and read in one step, stored later when async
        vis = None
        if gap != 2 and not c.blind:
            if c.async_lk and lk is not None:
                m = M(s); m.lk = None; i, asked, hits, absent = lk; self.evidence(m, i, asked, hits, absent)
                add('look-up of E%d stored: %s' % (i+1, 'hits %s' % sorted(hits) if hits else 'absent with proof' if absent else 'not found yet'), m)
            else:
                for i, e in enumerate(E):
                    if e[ST] == 'N' or (e[ST] == 'H' and not e[NATT]): continue
                    hits = self.visible(base)
                    absent = not hits and self.lag_over(base) and ('late_wait' in mut or self.landed_safe(base, i)) and bool(c.proof)
                    if c.async_lk: m = M(s); m.lk = (i, e[NATT], hits, absent); add('look-up of E%d read' % (i+1), m)
                    else:
                        m = M(s)
                        fr = self.free_hits(m, i, hits)
                        ab = not fr and self.lag_over(base) and ('late_wait' in mut or self.landed_safe(base, i))
                        self.evidence(m, i, e[NATT], hits, ab)
                        add('look-up of E%d: %s' % (i+1, 'hits %s' % sorted(fr) if fr else 'absent with proof' if ab else 'not found yet'), m)
        # vendor key
        if c.same_key and gap == 0:
            for i, e in enumerate(E):
                if e[ST] == 'U' and key == 0 and not self.free_hits(base, i, self.visible(base)):
                    m = M(s); m.e(i, ST='C', WHY='k', BY='k', FRM=('U', '', '', 1), REL=1, USED=0); add('vendor key: E%d cleared (same_key)' % (i+1), m)
        # release
        if gap != 2:
            for i, e in enumerate(E):
                if e[ST] in 'CTX' and not e[REL] and e[BY] == 'p':
                    frm = e[FRM][0] if e[FRM] else 'U'
                    need = (e[ST] == 'X' or (e[ST] == 'C' and e[WHY] == 'n')) and (frm != 'H') and (e[NATT] or e[GAPD] or 'no_attempt' not in fix)
                    def rel(m, how):
                        m.e(i, REL=1)
                        if e[ST] == 'X': self.drop_claim(m, i)
                        add('release of E%d (%s)' % (i+1, how), m)
                    if not need: rel(M(s), 'hold over'); continue
                    if 'release_wait' not in mut and not self.landed_safe(base, i): continue
                    if 'recheck' in mut:
                        if not ('no_silence' in fix and e[EARLY]): rel(M(s), 'no re-check')
                        continue
                    if not c.blind:
                        fr = [h for h in self.free_hits(base, i, self.visible(base)) if h not in e[ASIDE]]
                        if fr: m = M(s); self.undo_to(m, i, ('U', '', '', 1)); add('re-check of E%d: hit, reopened' % (i+1), m)
                        elif not ('recheck_lag' in fix and not self.lag_over(base)): rel(M(s), 're-check: nothing found')
                    if (c.silence or c.blind) and not ('no_silence' in fix and e[EARLY]): rel(M(s), 're-check: no answer')
                    # decided too early: the same person confirms after the moment (a fresh decision)
        # permission expiry
        if c.expire and gap != 2:
            for i, e in enumerate(E):
                if e[ST] == 'C' and e[REL] and all(a[PH] == 2 for a in A):
                    m = M(s)
                    if e[WHY] == 'a': m.e(i, ST='H', WHY='', BY='', FRM=None, REL=1)
                    else: self.interrupt(m, i)
                    add('time: permission of E%d expires' % (i+1), m)
        # person
        if c.person and gap != 2:
            for i, e in enumerate(E): self.person(s, base, i, e, add)
        # restore
        if c.restore:
            if snap is None and gap == 0 and A == () or (snap is None and gap == 0 and c.restore == 2):
                m = M(s); m.misc[1] = (E, R, claim); add('backup', m)
            elif snap and gap == 0 and snap != (E, R, claim):
                m = M(s); m.E, m.R, m.claim = list(snap[0]), list(snap[1]), snap[2]; m.misc[1] = (); m.lk = None
                m.misc[2] = 2 if c.restore != 3 else 1
                self.time_rows(m); add('restore%s' % (', noticed' if m.misc[2] == 2 else ', nobody shows a newer position'), m)
            if gap == 2:
                m = M(s); m.misc[2] = 3
                for i, e in enumerate(m.E):
                    if e[ST] in 'ICH' or ('gap_terminal' in fix and e[ST] in 'FX'):
                        st0 = e[ST]; self.interrupt(m, i)
                        if st0 in 'FX': self.reclaim(m, i)
                    if m.E[i][ST] != 'N': m.e(i, GAPD=1, FENCE=e[FENCE] + (0 if 'fence_jump' in mut else 10))
                for r, x in enumerate(m.R): m.R[r] = (0, x[1], 1)
                add('person acknowledges the gap', m)
            if gap == 3 and (c.wrong or all(E[a[AE]][ST] != 'N' for a in A)):
                m = M(s); m.misc[2] = 0; add('person ends the gap', m)
        return out

    def time_rows(self, m):
        for i, e in enumerate(m.E):
            if e[ST] == 'I' and (m.A[e[LAST]][PH] > 0): self.interrupt(m, i)

    def undo_to(self, m, i, f):
        """back to the state a decision was made from; f = (state, why, by, released)"""
        e = m.E[i]
        was = (e[ST], e[WHY], e[REL])
        if f[0] == 'C' and 'undo_permit' in self.c.fix: f = ('H' if f[1] == 'a' else 'U', '', '', 1)
        m.e(i, ST=f[0], WHY=f[1], BY=f[2], REL=f[3], USED=0, REF=0, FRM=('U', '', '', 1) if f[0] == 'C' else None)
        if was[0] == 'C' and was[1] == 'a': self.claim_back(m, i)
        if was[0] == 'X':
            if 'undo_claim' in self.c.fix and f[0] in 'UC':
                if not self.reclaim(m, i): m.e(i, ST='H', WHY='', BY='', REL=1, FRM=None)
            self.reopened(m, i)
        elif f[0] == 'U': self.reopened(m, i)
        self.post(m, i)

    def person(self, s, base, i, e, add):
        c, E, A, P = self.c, s[0], s[3], s[4]
        mine = [j+1 for j, p in enumerate(P) if p[0] == i]
        group = [j+1 for j, p in enumerate(P)] if c.same_logical else mine
        st, w = e[ST], c.wrong
        early = 0 if (self.landed_safe(base, i) and self.lag_over(base)) else 1
        def dec(label, **kw):
            m = M(s); m.e(i, BY='p', REL=0, USED=0, FRM=(st, e[WHY], e[BY], e[REL]), EARLY=early if kw['ST'] in 'CX' else 0, **kw)
            m.e(i, ASIDE=tuple(h for h in self.visible(base) if h not in mine or w) if 'set_aside' in c.fix and kw['ST'] in 'CX' and kw['WHY'] != 'a' else ())
            if kw['ST'] == 'T': self.post(m, i)
            if kw['ST'] == 'X' and 'stop_frees' in c.mut: self.drop_claim(m, i)
            if kw.get('WHY') == 'a': m.claim = i
            add('person: E%d %s%s' % (i+1, label, '' if not w else ' (right or wrong)'), m)
        confirm = st == 'C' and e[WHY] == 'n' and e[BY] == 'p' and not e[REL] or st == 'X' and not e[REL] and e[BY] == 'p'
        if confirm and e[EARLY] and not early and (w or not group):
            m = M(s); m.e(i, EARLY=0); add('person: E%d confirmed after the moment' % (i+1), m)
        if st == 'U':
            if mine or w:
                free = [r for r in mine if not self.owned(base, r, i)]
                if c.noref or not free: dec('taken', ST='T', WHY='', REF=-1)
                else:
                    for r in free: dec('taken r%d' % r, ST='T', WHY='', REF=r)
            if not mine or w:
                if not group or w: dec('not_taken', ST='C', WHY='n')
                dec('stop', ST='X', WHY='')
        elif st == 'H':
            def closed(k, o):
                if o[ST] in 'NHTF': return True
                return o[ST] == 'X' and (o[REL] or 'allow_rel' not in c.fix)
            ok = all(closed(k, o) for k, o in enumerate(E) if k != i)
            if ok and (w or not group or (not c.same_logical and not mine)): dec('allow', ST='C', WHY='a')
            if any(o[ST] == 'T' for k, o in enumerate(E) if k != i) and (w or (c.same_logical and group)): dec('same_as', ST='T', WHY='', REF=-2)
            dec('stop', ST='X', WHY='')
        elif st == 'C':
            if mine or w:
                free = [r for r in mine if not self.owned(base, r, i)]
                dec('taken', ST='T', WHY='', REF=free[0] if free and not c.noref else -1)
            if not mine or w: dec('stop', ST='X', WHY='')
        if c.undo and st in 'TCX' and e[BY] in 'pq' and not e[USED] and e[FRM]:
            m = M(s); self.undo_to(m, i, e[FRM]); add('person: undo E%d' % (i+1), m)
        if e[CON] == 1: m = M(s); m.e(i, CON=2); add('person: acknowledges the contradiction of E%d' % (i+1), m)

    # ---- properties of one state
    def two(self, s):
        P, c = s[4], self.c
        if c.same_logical: return len(P) > 1
        return any(sum(1 for p in P if p[0] == i) > 1 for i in range(self.n))
    def bad(self, s):
        c, E, claim = self.c, s[0], s[2]
        v = []
        if self.two(s):
            if c.bank == 'A': v.append('P1 two payments of one logical payment (bank A)')
            elif not c.late and not c.wrong: v.append('P2 two payments (bank B, in time, truthful)')
            else: v += self.p3(s)
        if claim < 0 and not s[6][2]:
            for i, e in enumerate(E):
                if e[ST] in 'IUCT': v.append('P6 claim free while E%d is %s' % (i+1, e[ST])); break
        refs = [e[REF] for e in E if e[ST] == 'T' and e[REF] > 0]
        if len(refs) != len(set(refs)): v.append('P7 one reference proves two effects')
        return v
    def p3(self, s):
        """two payments: look-ups that see everything, and late finishes, must record a contradiction"""
        if any(e[CON] for e in s[0]) or s[6][2]: return []
        def looks(m):
            for _ in range(2):
                for i, e in enumerate(m.E):
                    if m.E[i][ST] == 'N' or not m.E[i][NATT]: continue
                    hits = self.visible(m); self.evidence(m, i, m.E[i][NATT], hits, False)
        def fins(m):
            for k in range(len(m.A)):
                if m.A[k][RS] == 2: self.finish(m, k)
        def ok(m): return any(e[CON] for e in m.E) or any(e[ST] in 'IUHC' or (e[ST] == 'X' and not e[REL]) for e in m.E)
        m = M(s); m.P = [(p[0], 1, p[2]) for p in m.P]
        a = M(m.s()); b = M(m.s()); v = []
        if not self.c.blind:
            looks(a)
            if not ok(a): v.append('P3 two payments, all closed, look-ups record no contradiction')
        fins(b); fins(b)
        if not ok(b) and self.c.blind: v.append('P3b two payments, all closed, late finishes record no contradiction')
        if not self.c.blind:
            fins(a)
            if not ok(a): v.append('P3c neither look-ups nor late finishes record a contradiction')
        return v
    def goal(self, s): return all(r[1] for r in s[1])

def check(c, limit=1000000, tmax=110, p4=True, verbose=True, stop_all=None):
    mo = Model(c); s0 = mo.init()
    idx = {s0: 0}; parent = array('i', [-1]); labels = ['']; lab_of = {}; lab = array('i', [0]); lablist = ['']
    states = [s0]; src = array('i'); dst = array('i'); goals = []; viol = {}; t0 = time.time(); cut = False
    i = 0
    while i < len(states):
        s = states[i]
        if mo.goal(s): goals.append(i)
        for label, n, flag in mo.succ(s):
            if n is None: goals.append(i); continue
            j = idx.get(n)
            if j is None:
                j = len(states)
                idx[n] = j; states.append(n); parent.append(i)
                if label not in lab_of: lab_of[label] = len(lablist); lablist.append(label)
                lab.append(lab_of[label])
                for v in mo.bad(n): viol.setdefault(v, j)
            if flag and flag not in viol: viol[flag] = j
            if p4 and j != i: src.append(i); dst.append(j)
        i += 1
        if i % 2000 == 0 and (time.time() - t0 > tmax or len(states) > limit): cut = True; break
        if stop_all and any(v.split()[0].rstrip('bc') in stop_all for v in viol): cut = True; break
    hang = None
    if p4 and not cut:
        n = len(states); head = array('i', [-1]) * n; nxt = array('i', [0]) * len(src)
        for k in range(len(src)): nxt[k] = head[dst[k]]; head[dst[k]] = k
        seen = bytearray(n); st = list(goals)
        for g in st: seen[g] = 1
        while st:
            x = st.pop(); k = head[x]
            while k >= 0:
                y = src[k]
                if not seen[y]: seen[y] = 1; st.append(y)
                k = nxt[k]
        bad = [x for x in range(n) if not seen[x]]
        if bad: hang = bad[0]; viol['P4 no continuation finishes every run (%d states)' % len(bad)] = bad[0]
    def trace(j):
        t = []
        while j > 0: t.append(lablist[lab[j]]); j = parent[j]
        return t[::-1]
    res = dict(name=c.name, states=len(states), edges=len(dst), secs=time.time()-t0, cut=cut, viol={v: trace(j) for v, j in viol.items()},
               at={v: states[j] for v, j in viol.items()}, p4=p4)
    if verbose: show(res, c)
    return res

def show(r, c):
    print('== %s%s%s: %d states, %d edges, %.0f s%s' % (r['name'], ' +' + ','.join(sorted(c.fix)) if c.fix else '', ' -' + ','.join(sorted(c.mut)) if c.mut else '',
          r['states'], r['edges'], r['secs'], ', CUT (bounded)' if r['cut'] else ''))
    if not r['viol']: print('   no violation')
    for v, t in sorted(r['viol'].items()):
        print('   %s' % v)
        for k, l in enumerate(t, 1): print('     %2d. %s' % (k, l))
        s = r['at'][v]
        print('      -> ' + '; '.join('E%d %s%s by %s rel %d used %d ref %d con %d' % (i+1, e[ST], e[WHY], e[BY] or '-', e[REL], e[USED], e[REF], e[CON]) for i, e in enumerate(s[0])), 'claim E%d' % (s[2]+1), 'payments %s' % (s[4],))
    sys.stdout.flush()

# ---- P5: which rows of the design's table match a (state, event) pair; the catch-all row is not counted
def contexts():
    for st in 'NIUHCTFX':
        for why in ('nak' if st == 'C' else '-'):
            for by in {'T': 'wlqp', 'F': 'wl', 'X': 'pc', 'C': {'n': 'qp', 'a': 'p', 'k': 'k', '-': '-'}[why]}.get(st, '-'):
                for used in ((1,) if (st == 'F' or by in 'wlc') else (0,) if st == 'C' else (0, 1) if st in 'TX' else (0,)):
                    for rel in ((0, 1) if by == 'p' and not used else (1,)):
                        for att in ((0,) if st == 'N' else (1, 2) if st in 'IF' or by in 'wl' else (0, 1, 2)):
                            yield dict(st=st, why=why, by=by, used=used, rel=rel, att=att)
EVENTS = ['deadline or lease passed', 'begin', 'finish taken, last', 'finish failed, last', 'finish unknown, last', 'finish taken, earlier', 'finish failed, earlier',
          'look-up taken', 'look-up not_taken', 'look-up hit (not final, mismatch, double)', 'look-up taken, other reference', 'same_key',
          'person taken', 'person not_taken', 'person stop', 'person allow', 'person same_as', 'undo', 'run closed', '24 h']
def rows(fixed):
    S = lambda c, x: c['st'] in x
    tk = lambda e: e in ('finish taken, last', 'look-up taken') or e == 'finish taken, earlier' and not fixed
    anyhit = lambda e: tk(e) or e.startswith('look-up hit') or e == 'look-up taken, other reference'
    first = [('deadline/lease', lambda c, e: S(c, 'I') and e == 'deadline or lease passed'), ('24 h', lambda c, e: S(c, 'C') and e == '24 h')]
    if fixed: first.append(('later attempt begun', lambda c, e: c['att'] == 2 and e == 'finish taken, earlier'))
    L = [('begin new', lambda c, e: S(c, 'N') and e == 'begin'), ('finish without intent', lambda c, e: S(c, 'N') and e.startswith('finish')),
         ('in_flight begin', lambda c, e: S(c, 'I') and e == 'begin'),
         ('in_flight finish', lambda c, e: S(c, 'I') and e in ('finish taken, last', 'finish failed, last')),
         ('in_flight unknown', lambda c, e: S(c, 'I') and e == 'finish unknown, last'),
         ('interrupted look-up', lambda c, e: S(c, 'U') and e in ('look-up taken', 'look-up not_taken')), ('interrupted key', lambda c, e: S(c, 'U') and e == 'same_key'),
         ('interrupted late finish', lambda c, e: S(c, 'U') and e in ('finish taken, last', 'finish failed, last')),
         ('interrupted person', lambda c, e: S(c, 'U') and e in ('person taken', 'person not_taken', 'person stop')),
         ('held person', lambda c, e: S(c, 'H') and e in ('person allow', 'person same_as', 'person stop')), ('paused begin', lambda c, e: S(c, 'HU') and e == 'begin'),
         ('cleared begin', lambda c, e: S(c, 'C') and e == 'begin' and c['rel']),
         ('cleared late taken', lambda c, e: S(c, 'C') and e == 'finish taken, last'),
         ('cleared hit', lambda c, e: S(c, 'C') and c['why'] in 'nk' and (anyhit(e) if c['why'] == 'n' else tk(e) or e == 'look-up taken, other reference')
             and not (fixed and e.startswith('finish'))),
         ('cleared person/closed', lambda c, e: S(c, 'C') and e in ('person taken', 'person stop', 'run closed')),
         ('replay', lambda c, e: S(c, 'TF') and e == 'begin' and (c['rel'] or not fixed)), ('cancelled begin', lambda c, e: S(c, 'X') and e == 'begin'),
         ('cancelled unused taken', lambda c, e: S(c, 'X') and c['by'] == 'p' and not c['used'] and tk(e)),
         ('cancelled used/failed taken', lambda c, e: (S(c, 'X') and c['used'] or S(c, 'F')) and (tk(e) or fixed and anyhit(e))),
         ('taken unused contradicted', lambda c, e: S(c, 'T') and c['by'] in 'qp' and not c['used'] and e in ('look-up not_taken', 'finish failed, last')),
         ('taken used contradicted', lambda c, e: S(c, 'T') and (c['used'] and e in ('look-up not_taken', 'finish failed, last') or (c['used'] or fixed) and e == 'look-up taken, other reference')),
         ('later attempt begun', lambda c, e: c['att'] == 2 and e == 'finish taken, earlier'),
         ('undo', lambda c, e: S(c, 'TCX') and c['by'] in 'qp' and not c['used'] and e == 'undo')]
    return first, L
def table(fixed):
    first, L = rows(fixed); none, many, pairs = {}, {}, 0
    for c in contexts():
        for e in EVENTS:
            if e.endswith('earlier') and c['att'] < 2 or e.startswith('finish') and e.endswith('last') and c['att'] < 1 and c['st'] != 'N' or e.startswith('look-up') and c['st'] == 'N': continue
            pairs += 1
            if any(f(c, e) for _, f in first): continue
            k = [n for n, f in L if f(c, e)]
            name = {'N': '(none)', 'I': 'in_flight', 'U': 'interrupted', 'H': 'held', 'C': 'cleared', 'T': 'taken', 'F': 'failed', 'X': 'cancelled'}[c['st']]
            ctx = '%s%s' % (name, ' %s, %s, %s, attempts %d' % (c['why'] if c['st'] == 'C' else 'by ' + c['by'], 'used' if c['used'] else 'unused', 'released' if c['rel'] else 'unreleased', c['att']))
            if not k: none.setdefault((name, e), []).append(ctx)
            if len(k) > 1: many.setdefault((name, e, ' | '.join(k)), []).append(ctx)
    print('%d pairs; two rows:' % pairs)
    for k, v in many.items(): print('  ', k, '(%d contexts, e.g. %s)' % (len(v), v[0]))
    print('only the catch-all:')
    for k, v in none.items(): print('  ', k, '(%d, e.g. %s)' % (len(v), v[0]))

CONFIGS = [
    dict(name='A1', bank='A', maxatt=3, lost=1, late=1, same_key=1, async_lk=1),
    dict(name='A1w', bank='A', maxatt=3, late=1, wrong=1, same_key=1, refuse=1),
    dict(name='A1life', bank='A', maxatt=3, same_key=1, life=1),
    dict(name='A2', bank='A', runs=(0, 1), maxatt=2, same_key=1, undo=0),
    dict(name='B1', maxatt=3, lost=1, async_lk=1, silence=0),
    dict(name='B1s', maxatt=3, silence=1, refuse=1),
    dict(name='B1blind', maxatt=2, blind=1, refuse=1, lost=1),
    dict(name='B1late', maxatt=3, late=1, refuse=1),
    dict(name='B1lateN', maxatt=3, late=1, noref=1),
    dict(name='B1wrong', maxatt=3, wrong=1),
    dict(name='B2', runs=(0, 1), maxatt=2, silence=0, expire=0),
    dict(name='B2s', runs=(0, 1), maxatt=2, silence=1),
    dict(name='B2late', runs=(0, 1), maxatt=2, late=1, expire=0),
    dict(name='B2wrong', runs=(0, 1), maxatt=2, wrong=1, same_logical=0, undo=0, expire=0),
    dict(name='B2honest', runs=(0, 1), maxatt=3, same_logical=0, silence=0, undo=0),
    dict(name='B2fence', runs=(0, 1), maxatt=3, refuse=1, silence=0, undo=0, expire=0),
    dict(name='B2run', runs=(0, 0), maxatt=3, silence=0),
    dict(name='Brest', maxatt=2, restore=2, silence=0),
    dict(name='BrestF', maxatt=3, restore=2, silence=0, refuse=1, undo=0),
    dict(name='Brest2', runs=(0, 1), maxatt=2, restore=2, silence=0, undo=0, expire=0),
    dict(name='Brestq', maxatt=2, restore=3, silence=0),
    dict(name='Arest', bank='A', maxatt=2, restore=3, same_key=1, late=1),
]

def get(name, mods=()):
    c = Cfg(**next(x for x in CONFIGS if x['name'] == name))
    for m in mods:
        if m == '+all': c.fix |= set(FIXES) - OPTIONAL
        elif m[0] == '+': assert m[1:] in FIXES, m; c.fix.add(m[1:])
        else: assert m[1:] in MUTANTS, m; c.mut.add(m[1:])
    return c

PLAN_M = {'fence': 'B2fence', 'lease': 'B1 B1late', 'epoch': 'B1 B1late', 'claim_recheck': 'B2 B2s', 'claim': 'B2', 'release_wait': 'B1s',
    'recheck': 'B1s B2s', 'attempt_id': 'B1', 'attempt_id_retry': 'B1', 'ref_unique': 'B2honest', 'asked_n': 'B1 B1late', 'late_wait': 'B1', 'fence_jump': 'BrestF',
    'vendor_key': 'A1', 'withdraw': 'B1s B2s B1late', 'stop_frees': 'B2', 'permit_once': 'B1'}
PLAN_F = {'allow_rel': 'B2', 'recheck_lag': 'B1', 'no_silence': 'B1s B1blind', 'undo_claim': 'B1', 'key_begin': 'A1life', 'any_other_ref': 'B1late B1lateN',
    'inflight_multi': 'B1late', 'cancel_contra': 'B2late', 'overlap_contra': 'B2late', 'gap_deadline': 'Brest', 'gap_terminal': 'Brest', 'held_taken': 'B2 B2late',
    'undo_permit': 'B1s', 'close_key': 'A2', 'multi_closed': 'B1late', 'overlap_two': 'B2late', 'no_attempt': 'B2wrong', 'set_aside': 'B2 B2s', 'gap_fence': 'BrestF',
    'earlier_withdraw': 'B1late A1', 'other_taken': 'B1late Brest', 'ref_owned': 'B1late B2honest', 'early_withdraw': 'B1late', 'same_as_stays': 'B2', 'cancel_both': 'B2late'}
SERIOUS = ('P1', 'P2', 'P3', 'P6', 'P7', 'P9')

def one(kind, name, mods, base=()):
    for n in name.split():
        c = get(n, mods)
        c.fix -= set(base)
        r = check(c, verbose=False, stop_all=SERIOUS, tmax=60)
        v = sorted(r['viol'])
        print('%-4s %-16s %-8s %8d states%s  %s' % (kind, mods[-1] if kind == 'mut' else '+'.join(base), n, r['states'], ' CUT' if r['cut'] and not v else '', v[0] + ' in %d steps' % len(r['viol'][v[0]]) if v else 'no violation'))
        if v:
            for k, l in enumerate(r['viol'][v[0]], 1): print('        %2d. %s' % (k, l))
            if not v[0].startswith('P10'): break
        sys.stdout.flush()

def main(a):
    if not a or a[0] == 'list':
        print(__doc__)
        for x in CONFIGS: print(' ', x)
        for k, v in FIXES.items(): print('  +%s: %s' % (k, v))
        for k, v in MUTANTS.items(): print('  -%s: %s' % (k, v))
    elif a[0] == 'check': check(get(a[1], a[2:]))
    elif a[0] == 'table': table('+all' in a)
    elif a[0] == 'mutants':
        for k in (a[1:] or PLAN_M): one('mut', PLAN_M[k], ('+all', '-' + k))
    elif a[0] == 'needed':
        for k in (a[1:] or PLAN_F): one('fix', PLAN_F[k], ('+all',), (k,))
    elif a[0] == 'suite':
        for x in CONFIGS: check(get(x['name'], a[1:]))

if __name__ == '__main__': main(sys.argv[1:])
