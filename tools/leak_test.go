package tools

import (
	"testing"

	"go.uber.org/goleak"

	"fabro-mcp/fabroapi/wire"
)

// TestNothingLeaks: gathers that ended, were cancelled or cut off, subscriptions and
// completions leave no goroutine behind.
func TestNothingLeaks(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Run("use", func(t *testing.T) {
		api := newFakeAPI(t)
		done, run := api.add(wire.StatusSucceeded), api.add(wire.StatusRunning)
		s := open(t, Config{Connect: api.connect, StateDir: t.TempDir()}, rev2511, accept(map[string]any{"answer": "A"}))
		s.request("resources/subscribe", map[string]any{"uri": "fabro://runs/" + run.ID})
		s.request("resources/subscribe", map[string]any{"uri": "fabro://runs"})
		s.call(nameGather, `{"run_ids":["`+done.ID+`"]}`)
		s.beginCall(nameGather, `{"run_ids":["`+run.ID+`"]}`, nil)
		api.waitFor(t, run.ID+"/attach")
		s.mu.Lock()
		id := s.nextID
		s.mu.Unlock()
		s.write(map[string]any{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": map[string]any{"requestId": id}})
		s.beginCall(nameGather, `{"run_ids":["`+run.ID+`"]}`, nil) // cut off by the end of the session
		s.request("completion/complete", map[string]any{"ref": map[string]any{"type": "ref/prompt", "name": promptWatch}, "argument": map[string]any{"name": argRun, "value": ""}})
	})
	goleak.VerifyNone(t, before)
}
