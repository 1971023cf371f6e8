// A provider of OpenID Connect on this machine, as others write one: oidc-provider.
import { pathToFileURL } from 'node:url';

const [library, port, secret, redirect] = process.argv.slice(2);
const { Provider } = await import(pathToFileURL(library));
const people = {
  anna: { preferred_username: 'anna', groups: ['others', 'dns-admins'] },
  otto: { preferred_username: 'otto', groups: ['others'] },
};
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    {
      client_id: 'gannet',
      client_secret: secret,
      redirect_uris: [redirect],
      response_types: ['code'],
      grant_types: ['authorization_code'],
    },
  ],
  claims: { openid: ['sub'], profile: ['preferred_username', 'groups'] },
  // Claims of the scopes are in the ID token, too.
  conformIdTokenClaims: false,
  pkce: { required: () => true },
  cookies: { keys: ['of this test alone'] },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...people[id] }) }),
});
provider.listen(Number(port), '127.0.0.1', () => console.log('ready'));
