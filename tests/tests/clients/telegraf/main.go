// Telegraf with one plug-in, the input "unbound": gathers once, prints what it gathered in
// InfluxDB's line protocol, and fails if the plug-in met an error. The argument is a telegraf.conf.
package main

import (
	"context"
	"log"
	"os"

	"github.com/influxdata/telegraf/agent"
	"github.com/influxdata/telegraf/config"
	_ "github.com/influxdata/telegraf/plugins/inputs/unbound"
)

func main() {
	settings := config.NewConfig()
	if err := settings.LoadConfig(os.Args[1]); err != nil {
		log.Fatal(err)
	}
	if err := agent.NewAgent(settings).Test(context.Background(), 0); err != nil {
		log.Fatal(err)
	}
}
