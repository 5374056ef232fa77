/** The lines a newcomer needs: where it listens, where the key is, and a call that works. */

export interface GreetingFacts {
  readonly host: string;
  readonly port: number;
  /** Of the root key, when it was generated. */
  readonly keyFile: string | undefined;
  readonly insecureAuth: boolean;
}

export function greeting({ host, port, keyFile, insecureAuth }: GreetingFacts): string {
  const address = `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const key = keyFile === undefined ? '' : ` -H "x-api-key: $(cat '${keyFile}')"`;
  const lines = [
    `Listening on ${address}`,
    ...(keyFile === undefined ? [] : [`Root key in ${keyFile}`]),
    ...(insecureAuth ? ['No key is checked: --insecure-auth'] : []),
    `Try: curl -s${key} -H 'x-tenant-id: demo' ${address}/api/v1/instances`,
  ];
  return `${lines.join('\n')}\n`;
}
