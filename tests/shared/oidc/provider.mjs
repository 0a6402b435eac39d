// An OpenID Connect provider for tests: panva's certified `oidc-provider` on loopback, with people and groups.
//
// PORT: where it listens. REDIRECT_URIS: where Berth may send people back to, separated by spaces.
// It signs in whoever's user name is typed; PUT /people/<name> changes what it says of somebody, PUT /clock its time.

import http from 'node:http'
import { Provider } from 'oidc-provider'

const issuer = `http://127.0.0.1:${process.env.PORT}`
const people = new Map()
const realNow = Date.now
const redirects = (process.env.REDIRECT_URIS ?? '').split(' ')

const client = (id) => ({
  client_id: id,
  client_secret: `${id}-secret-for-tests`,
  redirect_uris: redirects,
  grant_types: ['authorization_code'],
  response_types: ['code']
})

const provider = new Provider(issuer, {
  clients: [client('berth'), client('another')],
  claims: {
    openid: ['sub'],
    profile: ['name', 'given_name', 'family_name', 'preferred_username', 'locale', 'groups'],
    email: ['email', 'email_verified']
  },
  cookies: { keys: ['only-for-tests'] },
  pkce: { required: () => true },
  features: { devInteractions: { enabled: false } },
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  findAccount: (_, sub) => ({ accountId: sub, claims: () => ({ sub, ...people.get(sub) }) }),
  async loadExistingGrant (context) { // the people of one house are not asked for their consent
    const grant = new provider.Grant({ clientId: context.oidc.client.clientId, accountId: context.oidc.session.accountId })
    grant.addOIDCScope('openid profile email')
    await grant.save()
    return grant
  }
})

const page = `<!doctype html><html lang="en"><title>Example University</title><link rel="icon" href="data:,"><h1>Example University</h1>
<form method="post"><label>University name <input name="who" autofocus></label>
<button>Continue</button><button name="cancel" value="1">Cancel</button></form></html>`

async function body (request) {
  let text = ''
  for await (const part of request) text += part
  return text
}

async function interact (request, response) {
  if (request.method === 'GET') return response.setHeader('Content-Type', 'text/html').end(page)
  const form = new URLSearchParams(await body(request))
  const result = form.get('cancel')
    ? { error: 'access_denied' }
    : { login: { accountId: [...people].find(([, person]) => person.preferred_username === form.get('who'))[0] } }
  return provider.interactionFinished(request, response, result)
}

async function control (request, response) {
  const wanted = JSON.parse(await body(request))
  if (request.url === '/clock') Date.now = () => realNow() + wanted.seconds * 1000
  else people.set(request.url.split('/')[2], wanted)
  response.end()
}

const oidc = provider.callback()
const answer = (request, response) => {
  if (request.url.startsWith('/interaction/')) return interact(request, response)
  if (request.method === 'PUT') return control(request, response)
  return oidc(request, response)
}
http.createServer((request, response) => {
  answer(request, response).catch((error) => response.writeHead(500).end(String(error)))
}).listen(Number(process.env.PORT), '127.0.0.1', () => console.log('ready'))
