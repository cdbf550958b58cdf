package protocol

import "fmt"

// Keys of _meta that this engine reads or writes.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaClientCaps   = "io.modelcontextprotocol/clientCapabilities"
	metaClientInfo   = "io.modelcontextprotocol/clientInfo"
	metaLogLevel     = "io.modelcontextprotocol/logLevel"
	metaServerInfo   = "io.modelcontextprotocol/serverInfo"
	metaSubscription = "io.modelcontextprotocol/subscriptionId"
	metaRelatedTask  = "io.modelcontextprotocol/related-task"
	metaProgress     = "progressToken"
	extensionTasks   = "io.modelcontextprotocol/tasks"
)

// requestMeta is _meta of a request, as far as the engine cares. The slices are
// parts of the frame; nil is absent.
type requestMeta struct {
	version       []byte
	clientCaps    []byte
	clientInfo    []byte
	logLevel      []byte
	progressToken []byte
	trace         TraceContext
}

// TraceContext is the W3C trace context that came with a request, as it came;
// empty strings are absent.
type TraceContext struct{ Traceparent, Tracestate, Baggage string }

// noMeta is that of the requests that have none.
var noMeta = new(requestMeta)

// read reads _meta. An error is one of type: it is no object.
func (m *requestMeta) read(raw []byte) *Error {
	*m = requestMeta{}
	if !isObject(raw) {
		return invalidParams("_meta must be an object")
	}
	members(raw, func(name, value []byte) bool {
		switch string(name) {
		case metaVersion:
			m.version = value
		case metaClientCaps:
			m.clientCaps = value
		case metaClientInfo:
			m.clientInfo = value
		case metaLogLevel:
			m.logLevel = value
		case metaProgress:
			m.progressToken = value
		case "traceparent":
			m.trace.Traceparent, _ = stringValue(value)
		case "tracestate":
			m.trace.Tracestate, _ = stringValue(value)
		case "baggage":
			m.trace.Baggage, _ = stringValue(value)
		}
		return true
	})
	return nil
}

// checkToken refuses a progress token that is neither string nor integer.
func (m *requestMeta) checkToken() *Error {
	if m.progressToken != nil && !validID(m.progressToken) {
		return invalidParams("_meta.progressToken must be a string or an integer")
	}
	return nil
}

// check verifies what a request with per-request metadata must carry, after its
// version was accepted.
func (m *requestMeta) check(known revisionTable) *Error {
	if m.clientCaps == nil {
		return known.missingMeta(metaClientCaps)
	}
	if !isObject(m.clientCaps) {
		return invalidParams("_meta[%q] must be an object", metaClientCaps)
	}
	if m.clientInfo != nil {
		if _, err := readImplementation(m.clientInfo); err != nil {
			return invalidParams("_meta[%q]: %v", metaClientInfo, err)
		}
	}
	if m.logLevel != nil {
		level, _ := stringValue(m.logLevel)
		if _, ok := parseLevel(level); !ok {
			return invalidParams("_meta[%q] must be one of %s", metaLogLevel, levelNames)
		}
	}
	return m.checkToken()
}

// readImplementation reads a clientInfo object: name and version are required
// strings.
func readImplementation(raw []byte) (impl Implementation, err error) {
	if !isObject(raw) {
		return impl, fmt.Errorf("must be an object")
	}
	var hasName, hasVersion bool
	members(raw, func(name, value []byte) bool {
		switch string(name) {
		case "name":
			impl.Name, hasName = stringValue(value)
		case "version":
			impl.Version, hasVersion = stringValue(value)
		case "title":
			impl.Title, _ = stringValue(value)
		case "description":
			impl.Description, _ = stringValue(value)
		case "websiteUrl":
			impl.WebsiteURL, _ = stringValue(value)
		}
		return true
	})
	if !hasName {
		return impl, fmt.Errorf("name must be a string")
	}
	if !hasVersion {
		return impl, fmt.Errorf("version must be a string")
	}
	return impl, nil
}

// clientCapabilities is what the peer declared, in initialize or for one request.
type clientCapabilities struct {
	form, url       bool // elicitation modes
	sampling        bool
	samplingTools   bool
	samplingContext bool
	roots           bool
	tasksExtension  bool
}

// readCapabilities reads a ClientCapabilities object as a revision understands it.
// Unknown members are ignored; a known one that is no object is an error.
func readCapabilities(raw []byte, rev *revision) (c clientCapabilities, err *Error) {
	members(raw, func(name, value []byte) bool {
		switch string(name) {
		case "elicitation", "sampling", "roots", "extensions", "experimental":
			if !isObject(value) {
				err = invalidParams("client capability %s must be an object", name)
				return false
			}
		}
		switch string(name) {
		case "elicitation":
			if !rev.has(featElicitation) {
				break
			}
			if !rev.has(featElicitationModes) {
				c.form = true
				break
			}
			c.form, c.url = field(value, "form") != nil, field(value, "url") != nil
			if !c.form && !c.url {
				c.form = true // an empty object means form mode
			}
		case "sampling":
			c.sampling = true
			if rev.has(featSamplingTools) {
				c.samplingTools, c.samplingContext = field(value, "tools") != nil, field(value, "context") != nil
			}
		case "roots":
			c.roots = true
		case "extensions":
			if rev.has(featExtensions) {
				c.tasksExtension = isObject(field(value, extensionTasks))
			}
		}
		return true
	})
	return c, err
}
