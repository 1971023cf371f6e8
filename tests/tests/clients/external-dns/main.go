// Has external-dns' provider for PowerDNS and its TXT registry bring zones to what is wanted, as its
// controller does in each turn; prints what it changed.
//
//	external-dns API-URL API-KEY OWNER [NAME TYPE TTL TARGET]...
//
// What is owned by OWNER and not named is deleted.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"sigs.k8s.io/external-dns/endpoint"
	"sigs.k8s.io/external-dns/pkg/apis/externaldns"
	"sigs.k8s.io/external-dns/plan"
	"sigs.k8s.io/external-dns/provider/pdns"
	"sigs.k8s.io/external-dns/registry/txt"
)

// How long all of it may take.
const patience = time.Minute

func main() {
	if err := turn(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func turn(arguments []string) error {
	if len(arguments) < 3 || (len(arguments)-3)%4 != 0 {
		return errors.New("expected API-URL API-KEY OWNER [NAME TYPE TTL TARGET]...")
	}
	types := []string{"A", "AAAA", "CNAME", "TXT", "MX", "SRV"}
	config := &externaldns.Config{
		PDNSServer: arguments[0], PDNSServerID: "localhost", PDNSAPIKey: arguments[1],
		TXTOwnerID: arguments[2], ManagedDNSRecordTypes: types,
	}
	ctx, end := context.WithTimeout(context.Background(), patience)
	defer end()
	provider, err := pdns.New(ctx, config, &endpoint.DomainFilter{})
	if err != nil {
		return err
	}
	registry, err := txt.New(config, provider)
	if err != nil {
		return err
	}
	present, err := registry.Records(ctx)
	if err != nil {
		return err
	}
	wanted, err := wanted(arguments[3:])
	if err != nil {
		return err
	}
	if wanted, err = registry.AdjustEndpoints(wanted); err != nil {
		return err
	}
	calculated := (&plan.Plan{
		Policies:       []plan.Policy{&plan.SyncPolicy{}},
		Current:        present,
		Desired:        wanted,
		DomainFilter:   endpoint.MatchAllDomainFilters{registry.GetDomainFilter()},
		ManagedRecords: types,
		OwnerID:        registry.OwnerID(),
	}).Calculate()
	changes := calculated.Changes
	fmt.Printf("create %d, update %d, delete %d\n", len(changes.Create), len(changes.UpdateNew), len(changes.Delete))
	if !changes.HasChanges() {
		return nil
	}
	return registry.ApplyChanges(ctx, changes)
}

// Reads endpoints, of which several targets with one name and type are one.
func wanted(arguments []string) ([]*endpoint.Endpoint, error) {
	var all []*endpoint.Endpoint
	for at := 0; at < len(arguments); at += 4 {
		name, kind, target := arguments[at], arguments[at+1], arguments[at+3]
		seconds, err := strconv.ParseInt(arguments[at+2], 10, 32)
		if err != nil {
			return nil, err
		}
		if last := len(all) - 1; last >= 0 && all[last].DNSName == name && all[last].RecordType == kind {
			all[last].Targets = append(all[last].Targets, target)
			continue
		}
		all = append(all, endpoint.NewEndpointWithTTL(name, kind, endpoint.TTL(seconds), target))
	}
	return all, nil
}
