package conformance

import "testing"

// trial plays the scenario of a handed trial through the client of every language.
func trial(t *testing.T, name string) {
	t.Helper()
	t.Parallel()
	newWorld(t).everyLanguage(t, name)
}

func TestBC001_EveryClientMeetsThePause(t *testing.T)               { trial(t, "bc001") }
func TestBC003_EveryClientTakesCallIDsForNotes(t *testing.T)        { trial(t, "bc003") }
func TestBC004_EveryClientIsRefusedNineTimes(t *testing.T)          { trial(t, "bc004") }
func TestBC005_EveryClientUsesAPermissionOnce(t *testing.T)         { trial(t, "bc005") }
func TestBC006_EveryClientHoldsARunAlone(t *testing.T)              { trial(t, "bc006") }
func TestBC008_EveryClientCountsASecondCall(t *testing.T)           { trial(t, "bc008") }
func TestBC009_EveryClientReplaysAFailure(t *testing.T)             { trial(t, "bc009") }
func TestBC011_EveryClientReplaysAResumedBatch(t *testing.T)        { trial(t, "bc011") }
func TestBC016_EveryClientIsHeldForAnotherAmount(t *testing.T)      { trial(t, "bc016") }
func TestBC017_EveryClientGetsItsOwnAnswers(t *testing.T)           { trial(t, "bc017") }
func TestBC018_NoClientReopensADecidedRun(t *testing.T)             { trial(t, "bc018") }
func TestBC019_EveryClientMayBeWokenTwiceForADecision(t *testing.T) { trial(t, "bc019") }
