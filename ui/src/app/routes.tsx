/** Maps addresses to pages. A page is loaded when it is first shown, or earlier while the browser is idle. */

import { type ComponentType, type ReactNode, Suspense, useEffect } from 'react';
import { Redirect, Route, Switch, useLocation } from 'wouter';
import { useMaySee } from '../api/engine.tsx';
import { Place } from '../components/later.tsx';
import { later, loadAhead } from '../lib/load.ts';
import { NAVIGATION } from './navigation.ts';
import { NotAllowed, NotFound } from './no-page.tsx';

type Load = () => Promise<{ default: ComponentType }>;

const PAGES: readonly (readonly [path: string, load: Load])[] = [
  ['/', () => import('../pages/overview/overview.tsx')],
  ['/instances', () => import('../pages/instances/instances.tsx')],
  ['/instances/:id/:tab?', () => import('../pages/instance/instance.tsx')],
  ['/failures', () => import('../pages/failures/failures.tsx')],
  ['/logs', () => import('../pages/logs/logs.tsx')],
  ['/approvals', () => import('../pages/approvals/approvals.tsx')],
  ['/schedules/:id?', () => import('../pages/schedules/schedules.tsx')],
  ['/pending-starts', () => import('../pages/pending-starts/pending-starts.tsx')],
  ['/jobs', () => import('../pages/jobs/jobs.tsx')],
  ['/sequences', () => import('../pages/sequences/sequences.tsx')],
  ['/sequences/new', () => import('../pages/sequences/new-sequence.tsx')],
  ['/sequences/:id/:tab?', () => import('../pages/sequences/sequence.tsx')],
  ['/releases', () => import('../pages/releases/releases.tsx')],
  ['/releases/:id/:tab?', () => import('../pages/releases/release.tsx')],
  ['/workers/:tab?', () => import('../pages/workers/workers.tsx')],
  ['/webhooks/:tab?', () => import('../pages/webhooks/webhooks.tsx')],
  ['/triggers/:tab?', () => import('../pages/triggers/triggers.tsx')],
  ['/keys/:tab?', () => import('../pages/keys/keys.tsx')],
  ['/activity', () => import('../pages/activity/activity.tsx')],
  ['/limits', () => import('../pages/limits/limits.tsx')],
  ['/cells', () => import('../pages/cells/cells.tsx')],
  ['/server', () => import('../pages/server/server.tsx')],
];

const ROUTES = PAGES.map(([path, load]) => ({ path, Page: later(load) }));

export function Routes() {
  useEffect(() => void loadAhead(), []);
  return (
    <Suspense fallback={<Place height={400} />}>
      <Switch>
        {ROUTES.map(({ path, Page }) => (
          <Route key={path} path={path}>
            <Gate>
              <Page />
            </Gate>
          </Route>
        ))}
        <Route>
          <NotFound />
        </Route>
      </Switch>
    </Suspense>
  );
}

/** Renders a page only if the key may open it. */
function Gate({ children }: { children: ReactNode }) {
  const [place] = useLocation();
  const maySee = useMaySee();
  if (maySee(place)) return children;
  const first = NAVIGATION.flatMap(({ items }) => items).find(({ href }) => maySee(href));
  return place === '/' && first ? (
    <Redirect to={first.href} replace />
  ) : (
    <NotAllowed path={place} />
  );
}
