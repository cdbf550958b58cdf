package protocol

import (
	"context"
	"encoding/json"
	"fmt"
)

// answer is the peer's response to a request of the server's.
type answer struct {
	result  json.RawMessage
	failure json.RawMessage
}

// askSession asks one question after another by requests to the peer.
func (x *Exchange) askSession(ctx context.Context, requests []InputRequest) (map[string]InputResponse, error) {
	found := make(map[string]InputResponse, len(requests))
	for i := range requests {
		q := &requests[i]
		body, err := q.append(nil, x.request.rev)
		if err != nil {
			return nil, err
		}
		raw, err := x.request.conn.askPeer(ctx, x.request, body)
		if err != nil {
			return nil, fmt.Errorf("asking the client: %w", err)
		}
		if q.Form != nil {
			raw = unformed(q.Form.Schema, raw, x.request.rev)
		}
		if found[q.Key], err = q.read(raw); err != nil {
			return nil, fmt.Errorf("unusable response of the client: %w", err)
		}
	}
	return found, nil
}

// askPeer sends a request of the server's own and waits for the response. body is
// the object {method, params}.
func (c *conn) askPeer(ctx context.Context, r *request, body []byte) (json.RawMessage, error) {
	// Before the client says that it is ready it must not be asked.
	select {
	case <-c.session.Load().initialized:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-c.inputClosed:
		return nil, ErrInputClosed
	}
	reply := make(chan answer, 1)
	c.mu.Lock()
	c.lastAsk++
	id := quote(nil, "s"+itoa(c.lastAsk))
	k := idKey(id)
	c.asks[k] = reply
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.asks, k)
		c.mu.Unlock()
	}()
	line := append(appendResponse(nil, id), ',')
	line = append(append(line, body[1:]...), '\n')
	if !c.out.send(r, line, false) {
		return nil, ErrCancelled
	}
	select {
	case a := <-reply:
		if a.failure != nil {
			code, message := readError(a.failure)
			return nil, fmt.Errorf("it answered with error %d: %s", code, clip(message))
		}
		return a.result, nil
	case <-c.inputClosed:
		return nil, ErrInputClosed
	case <-ctx.Done():
		line := append([]byte(nil), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{`...)
		line = append(keyRaw(line, "requestId", id), "}}\n"...)
		c.out.send(nil, line, false)
		return nil, context.Cause(ctx)
	}
}

func readError(raw []byte) (code int64, message string) {
	json.Unmarshal(field(raw, "code"), &code)
	message, _ = stringValue(field(raw, "message"))
	return code, message
}

// deliver hands a response to whoever waits for it; nobody may, and then it is
// dropped without a word.
func (c *conn) deliver(e *envelope) {
	if !validID(e.id) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := idKey(e.id)
	reply := c.asks[k]
	if reply == nil {
		return
	}
	delete(c.asks, k)
	clone := func(raw []byte) json.RawMessage {
		if raw == nil {
			return nil
		}
		return append(json.RawMessage{}, raw...)
	}
	reply <- answer{result: clone(e.result), failure: clone(e.failure)}
}
