/** Adapts a handler to function URLs of AWS Lambda, whose events are not `Request` objects. */

import type { Receive } from './handler.js';

/** The members of a function URL's event that are used. */
export interface FunctionUrlEvent {
  readonly rawPath?: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body?: string | null;
  readonly isBase64Encoded?: boolean;
  readonly requestContext: { readonly http: { readonly method: string } };
}

export interface FunctionUrlResult {
  readonly statusCode: number;
  readonly headers: Record<string, string>;
  readonly body: string;
}

export function toLambda(
  receive: Receive,
): (event: FunctionUrlEvent) => Promise<FunctionUrlResult> {
  return async ({ rawPath = '/', headers, body, isBase64Encoded, requestContext }) => {
    const { method } = requestContext.http;
    const sent = new Headers();
    for (const [name, value] of Object.entries(headers)) {
      if (value !== undefined) sent.set(name, value);
    }
    const content = isBase64Encoded ? decoded(body ?? '') : (body ?? '');
    const hasBody = method !== 'GET' && method !== 'HEAD';
    const response = await receive(
      new Request(`https://lambda${rawPath}`, {
        method,
        headers: sent,
        ...(hasBody ? { body: content } : {}),
      }),
    );
    return {
      statusCode: response.status,
      headers: Object.fromEntries(response.headers),
      body: await response.text(),
    };
  };
}

function decoded(base64: string): string {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  return new TextDecoder().decode(bytes);
}
