package metrics

import (
	"context"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-on-demand/aod/api"
)

// Figures are the current figures of a server.
type Figures struct {
	Version string // of the program
	Stats   api.Stats
	Pool    api.PoolStats
	Teams   []Team

	DatabaseBytes int64     // 0: it isn't known
	BackedUp      time.Time // when the last backup was made; zero: none was
}

// Team are the current figures of a team.
type Team struct {
	Name      string
	Sessions  int           // with agents, that are open
	Questions int           // that are open
	Oldest    time.Duration // how long the oldest of them has been; 0: there is none
}

// scrapeTime bounds how long the figures of one scrape take.
const scrapeTime = 5 * time.Second

// moment collects the current figures at each scrape.
type moment struct {
	current func(context.Context) (Figures, error)
}

var teamLabel = []string{"team"}

var (
	descRunning = prometheus.NewDesc("aod_runs_running", "Runs that hold a slot.", nil, nil)
	descSlots   = prometheus.NewDesc("aod_slots", "Runs that may hold a slot at once.", nil, nil)
	descWaiting = prometheus.NewDesc("aod_runs_queued", "Runs that wait for a slot.", []string{"unit"}, nil)
	descFree    = prometheus.NewDesc("aod_disk_free_bytes", "Free space where runs are kept.", nil, nil)
	descStored  = prometheus.NewDesc("aod_stored_runs", "Runs that are remembered.", nil, nil)
	descBytes   = prometheus.NewDesc("aod_stored_bytes", "What is kept of finished runs.", nil, nil)
	descPooled  = prometheus.NewDesc("aod_pool_waiting", "Sandboxes that wait for a run.", []string{"unit"}, nil)
	descBuild   = prometheus.NewDesc("aod_build_info", "Always 1; its labels say what runs here.",
		[]string{"version", "go_version"}, nil)
	descDatabase = prometheus.NewDesc("aod_database_bytes", "What the database takes on its disk.", nil, nil)
	descBackup   = prometheus.NewDesc("aod_backup_timestamp_seconds",
		"When the last backup was made, in Unix time; 0 where none was.", nil, nil)
	descSessions  = prometheus.NewDesc("aod_sessions_open", "Sessions with agents that are open.", teamLabel, nil)
	descQuestions = prometheus.NewDesc("aod_questions_open", "Questions that nobody has answered yet.", teamLabel, nil)
	descOldest    = prometheus.NewDesc("aod_question_oldest_seconds",
		"How long the oldest of the open questions has been open; 0 where there is none.", teamLabel, nil)
	descPool = prometheus.NewDesc("aod_pool_size", "Sandboxes that may wait for a run, those of all units together.",
		nil, nil)
)

// Describe implements prometheus.Collector.
func (moment) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descRunning, descSlots, descWaiting, descFree, descStored, descBytes,
		descPooled, descPool, descBuild, descDatabase, descBackup, descSessions, descQuestions, descOldest,
	} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (m moment) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	now, err := m.current(ctx)
	if err != nil {
		metrics <- prometheus.NewInvalidMetric(descStored, err)
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(descRunning, float64(now.Stats.Busy))
	gauge(descSlots, float64(now.Stats.Slots))
	gauge(descFree, float64(now.Stats.Disk.FreeBytes))
	gauge(descStored, float64(now.Stats.Disk.StoredRuns))
	gauge(descBytes, float64(now.Stats.Disk.StoredBytes))
	gauge(descBuild, 1, now.Version, runtime.Version())
	for _, unit := range now.Stats.Units {
		if unit.Queued > 0 {
			gauge(descWaiting, float64(unit.Queued), unit.Unit)
		}
	}
	gauge(descPool, float64(now.Pool.Size))
	gauge(descDatabase, float64(now.DatabaseBytes))
	gauge(descBackup, seconds(now.BackedUp))
	for _, team := range now.Teams {
		gauge(descSessions, float64(team.Sessions), team.Name)
		gauge(descQuestions, float64(team.Questions), team.Name)
		gauge(descOldest, team.Oldest.Seconds(), team.Name)
	}
	for _, unit := range now.Pool.Units {
		gauge(descPooled, float64(len(unit.Waiting)), unit.Unit)
	}
}

// seconds are those of Unix time; 0 of the zero time.
func seconds(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return float64(at.Unix())
}
