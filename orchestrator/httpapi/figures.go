package httpapi

import (
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator/metrics"
)

// figures are the metrics of requests. Their labels are the patterns of routes, known methods and classes of statuses:
// no client can add one.
type figures struct {
	requests *prometheus.CounterVec
	took     *prometheus.HistogramVec
	streams  prometheus.GaugeFunc
	routes   *routes
}

func newFigures(known *routes, streams *httpwire.Streams) figures {
	return figures{
		requests: metrics.Counter("aod_http_requests_total", "Requests that were answered.", "route", "method",
			"status"),
		took: metrics.Histogram("aod_http_request_duration_seconds", "From a request to the end of its answer.",
			"route", "method"),
		streams: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "aod_streams_open", Help: "Answers without an end of their own that are open.",
		}, func() float64 { return float64(streams.Open()) }),
		routes: known,
	}
}

// beside has the metrics, and those of the protocols, gathered together with others.
func (f figures) beside(others prometheus.Gatherer, protocols []prometheus.Collector) prometheus.Gatherer {
	own := prometheus.NewRegistry()
	own.MustRegister(f.requests, f.took, f.streams)
	own.MustRegister(protocols...)
	return prometheus.Gatherers{others, own}
}

// counted counts a request when it is answered.
func (f figures) counted(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		began := time.Now()
		defer func() {
			route, method := f.routes.nameOf(c), methodOf(c.Request())
			f.requests.WithLabelValues(route, method, classOf(c.Response().Status)).Inc()
			f.took.WithLabelValues(route, method).Observe(time.Since(began).Seconds())
		}()
		return next(c)
	}
}

// classOf is the class of a status, as 2xx.
func classOf(status int) string { return strconv.Itoa(status/100) + "xx" }
