// Orders a certificate with lego, whose records go into a zone over the API of PowerDNS, and prints
// the names that it is for.
//
//	acme DIRECTORY DNS-SERVER API-URL API-KEY NAME...
//
// The variable LEGO_CA_CERTIFICATES has the file that vouches for the authority.
package main

import (
	"context"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-acme/lego/v5/acme"
	"github.com/go-acme/lego/v5/certcrypto"
	"github.com/go-acme/lego/v5/certificate"
	"github.com/go-acme/lego/v5/challenge/dns01"
	"github.com/go-acme/lego/v5/lego"
	"github.com/go-acme/lego/v5/providers/dns/pdns"
	"github.com/go-acme/lego/v5/registration"
)

// How long all of it may take.
const patience = time.Minute

// An account at the authority.
type account struct {
	key        crypto.Signer
	registered *acme.ExtendedAccount
}

func (it *account) GetEmail() string                       { return "" }
func (it *account) GetRegistration() *acme.ExtendedAccount { return it.registered }
func (it *account) GetPrivateKey() crypto.Signer           { return it.key }

func main() {
	if err := order(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func order(arguments []string) error {
	if len(arguments) < 5 {
		return errors.New("expected DIRECTORY DNS-SERVER API-URL API-KEY NAME...")
	}
	directory, resolver, at, token, names := arguments[0], arguments[1], arguments[2], arguments[3], arguments[4:]
	ctx, end := context.WithTimeout(context.Background(), patience)
	defer end()
	key, err := certcrypto.GeneratePrivateKey(certcrypto.EC256)
	if err != nil {
		return err
	}
	own := &account{key: key}
	client, err := lego.NewClient(&lego.Config{
		CADirURL:    directory,
		User:        own,
		HTTPClient:  lego.NewConfig(own).HTTPClient,
		Certificate: lego.CertificateConfig{Timeout: patience, OverallRequestLimit: certificate.DefaultOverallRequestLimit},
	})
	if err != nil {
		return err
	}
	// Which zone a name is in is asked there, and so is whether the records can be seen.
	options := dns01.NewOptions()
	options.RecursiveNameservers = []string{resolver}
	dns01.SetDefaultClient(dns01.NewClient(options))
	config := pdns.NewDefaultConfig()
	if config.Host, err = url.Parse(at); err != nil {
		return err
	}
	config.APIKey = token
	config.PollingInterval = 100 * time.Millisecond
	provider, err := pdns.NewDNSProviderConfig(config)
	if err != nil {
		return err
	}
	// The name servers of the zone are at no port 53 of this machine.
	if err := client.Challenge.SetDNS01Provider(provider, dns01.DisableAuthoritativeNssPropagationRequirement()); err != nil {
		return err
	}
	own.registered, err = client.Registration.Register(ctx, registration.RegisterOptions{TermsOfServiceAgreed: true})
	if err != nil {
		return err
	}
	resource, err := client.Certificate.Obtain(ctx, certificate.ObtainRequest{
		Domains: names,
		KeyType: certcrypto.EC256,
		Bundle:  true,
	})
	if err != nil {
		return err
	}
	block, _ := pem.Decode(resource.Certificate)
	if block == nil {
		return errors.New("the authority gave no certificate")
	}
	issued, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return err
	}
	fmt.Println(strings.Join(issued.DNSNames, " "))
	return nil
}
