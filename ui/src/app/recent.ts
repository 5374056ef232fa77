/** What was opened from the palette in this tab, newest first, for each tenant. Signing out clears it. */

export interface Recent {
  readonly href: string;
  readonly label: string;
  readonly detail?: string | undefined;
}

const KEPT_MAX = 8;

const storedAs = (tenant: string | undefined) => `recent ${tenant ?? ''}`;

export function recentOf(tenant: string | undefined): readonly Recent[] {
  try {
    return JSON.parse(sessionStorage.getItem(storedAs(tenant)) ?? '[]') as Recent[];
  } catch {
    return [];
  }
}

export function noteRecent(tenant: string | undefined, opened: Recent): void {
  const others = recentOf(tenant).filter(({ href }) => href !== opened.href);
  const kept = [opened, ...others].slice(0, KEPT_MAX);
  sessionStorage.setItem(storedAs(tenant), JSON.stringify(kept));
}
