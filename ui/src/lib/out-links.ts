/** Links to other systems, from the templates of `ENGINE_UI_LINKS`. Pure. */

import type { UiLink } from 'durable-workflow-engine-client';

export interface OutLink {
  readonly label: string;
  readonly href: string;
}

type Values = Readonly<Record<string, string | undefined>>;

/** Those of the place whose values are all known: a link with a gap would lead to something else. */
export function outLinksOf(
  links: readonly UiLink[],
  on: UiLink['on'],
  values: Values,
): readonly OutLink[] {
  return links
    .filter((link) => link.on === on)
    .flatMap(({ label, url }) => {
      const href = filled(url, values);
      return href === undefined ? [] : [{ label, href }];
    });
}

function filled(url: string, values: Values): string | undefined {
  let isWhole = true;
  const href = url.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = values[name];
    isWhole &&= value !== undefined;
    return encodeURIComponent(value ?? '');
  });
  return isWhole ? href : undefined;
}

/** The trace id of a W3C `traceparent`. */
export function traceIdOf(traceparent: string | undefined): string | undefined {
  return traceparent?.split('-')[1];
}
