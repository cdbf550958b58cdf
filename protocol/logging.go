package protocol

import "time"

// At most so many log messages of one request go out at once, then one each
// interval; more are dropped.
const (
	logBurst    = 100
	logInterval = 10 * time.Millisecond
)

// Log sends a log message to the peer, if the server declares logging and the peer
// wants messages of that level. data is anything encoding/json can marshal; it
// must hold no secrets. logger may be empty.
func (x *Exchange) Log(level Level, logger string, data any) {
	r := x.request
	if !r.conn.server.Logging || x.detached() || !r.wantsLog(level) {
		return
	}
	raw, err := marshal(data)
	if err != nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.logs == nil {
		x.logs = new(bucket)
	}
	if !x.logs.take(time.Now(), logBurst, logInterval) {
		return
	}
	b := append([]byte(nil), `{"jsonrpc":"2.0","method":"notifications/message","params":{`...)
	b = keyString(b, "level", level.String())
	b = keyText(b, "logger", logger)
	b = keyRaw(b, "data", raw)
	r.conn.out.send(r, append(b, "}}\n"...), false)
}

// wantsLog: in the era of per-request metadata only a request that named a level
// gets messages; in a session the level set last counts, info before that.
func (r *request) wantsLog(level Level) bool {
	if r.rev.has(featPerRequest) {
		name, _ := stringValue(r.meta.logLevel)
		lowest, ok := parseLevel(name)
		return ok && level >= lowest
	}
	s := r.conn.session.Load()
	return s != nil && uint32(level) >= s.level.Load()
}

func serveSetLevel(r *request, b []byte) ([]byte, error) {
	name, err := r.stringParam("level")
	if err != nil {
		return b, err
	}
	level, ok := parseLevel(name)
	if !ok {
		return b, invalidParams("Parameter level must be one of %s", levelNames)
	}
	r.conn.session.Load().level.Store(uint32(level))
	return b, nil
}
