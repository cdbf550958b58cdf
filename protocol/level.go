package protocol

// Level is the severity of a log message, after syslog (RFC 5424).
type Level uint8

// The levels, least severe first.
const (
	LevelDebug Level = iota
	LevelInfo
	LevelNotice
	LevelWarning
	LevelError
	LevelCritical
	LevelAlert
	LevelEmergency
)

const levelNames = "debug, info, notice, warning, error, critical, alert, emergency"

var levels = [...]string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// String is the level's name on the wire.
func (l Level) String() string {
	if int(l) < len(levels) {
		return levels[l]
	}
	return levels[LevelError]
}

func parseLevel(s string) (Level, bool) {
	for i, name := range levels {
		if s == name {
			return Level(i), true
		}
	}
	return 0, false
}
