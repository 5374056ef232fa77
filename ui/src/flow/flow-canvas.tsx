/**
 * The diagram, which can be moved and zoomed. Positions come from `layout.ts` alone: a change of the run changes what
 * blocks show and never where they are. Every block is a button, and arrow keys move between them.
 */

import {
  MiniMap,
  type Node,
  type NodeProps,
  Panel,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
  useStore,
  ViewportPortal,
} from '@xyflow/react';
import { ChevronDown, ChevronRight, Maximize, ZoomIn, ZoomOut } from 'lucide-react';
import {
  type CSSProperties,
  type KeyboardEvent,
  memo,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState,
} from 'react';
import type { Tone } from '../components/badge.tsx';
import { IconButton } from '../components/button.tsx';
import { countOf } from '../lib/format.ts';
import '@xyflow/react/dist/base.css';
import { labelOf, useView, type View, ViewContext } from './faces.tsx';
import styles from './flow.module.css';
import { lookName } from './kinds.ts';
import type { Drawing, DrawnEdge, DrawnNode, DrawnSlot } from './layout.ts';
import { LookIcon } from './look-icon.tsx';
import { MARGIN, openingOf } from './opening.ts';
import { StickyHeads } from './sticky-heads.tsx';

const ZOOM = { min: 0.1, max: 1.5 } as const;

export default function FlowCanvas(props: { readonly drawing: Drawing; readonly label: string }) {
  return (
    <ReactFlowProvider>
      <Canvas {...props} />
    </ReactFlowProvider>
  );
}

type BlockNode = Node<{ readonly node: DrawnNode }, 'block'>;

const NODE_TYPES = { block: memo(BlockShape) };

function Canvas({ drawing, label }: { readonly drawing: Drawing; readonly label: string }) {
  const view = useView();
  const { selected, target } = view;
  const frame = useRef<HTMLDivElement>(null);
  const nodes = useMemo(() => drawing.nodes.map(flowNode), [drawing]);
  const byPath = useMemo(() => new Map(drawing.nodes.map((node) => [node.path, node])), [drawing]);
  const bringIntoView = useBringIntoView();
  const wanted = useRef<string | null>(null);
  // Zooming by wheel needs a click first, so that the diagram does not catch a scroll of the page.
  const [isActive, setActive] = useState(false);

  const focus = useCallback(
    (path: string) => {
      const node = byPath.get(path);
      if (node === undefined) return;
      bringIntoView(node);
      wanted.current = path;
      focusOn(frame.current, wanted);
    },
    [byPath, bringIntoView],
  );

  // An opened or closed group has a new button, which receives the focus.
  const onToggle = (path: string) => {
    wanted.current = path;
    view.onToggle(path);
  };

  // Blocks that were outside the viewport exist only after the next rendering.
  useEffect(() => {
    const watcher = new MutationObserver(() => focusOn(frame.current, wanted));
    if (frame.current !== null) watcher.observe(frame.current, { childList: true, subtree: true });
    return () => watcher.disconnect();
  }, []);

  const last = useRef<string | null>(null);
  useEffect(() => {
    const node = selected === null ? undefined : byPath.get(selected);
    if (node !== undefined && last.current !== selected) bringIntoView(node);
    last.current = selected;
  }, [selected, byPath, bringIntoView]);

  useEffect(() => {
    const node = target === null ? undefined : byPath.get(target);
    if (node !== undefined) bringIntoView(node);
  }, [target, byPath, bringIntoView]);

  const onKeyDown = (event: KeyboardEvent) => {
    const path = (event.target as HTMLElement).closest<HTMLElement>('[data-path]')?.dataset.path;
    const node = path === undefined ? undefined : byPath.get(path);
    if (node === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    const step = stepFrom(drawing, node, event.key);
    if (step === undefined) return;
    event.preventDefault();
    if (step.toggles) onToggle(node.path);
    else focus(step.path);
  };

  return (
    <ViewContext value={{ ...view, onToggle }}>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the keys are those of the buttons inside */}
      <div
        ref={frame}
        className={styles.canvas}
        onKeyDown={onKeyDown}
        onPointerDown={() => setActive(true)}
        onPointerLeave={() => setActive(false)}
      >
        <div className={styles.place}>
          <ReactFlow
            aria-label={label}
            nodes={nodes}
            nodeTypes={NODE_TYPES}
            nodesDraggable={false}
            nodesConnectable={false}
            nodesFocusable={false}
            elementsSelectable={false}
            disableKeyboardA11y
            onlyRenderVisibleElements
            panOnScroll={isActive}
            preventScrolling={isActive}
            zoomOnScroll={false}
            zoomActivationKeyCode={['Meta', 'Control']}
            minZoom={ZOOM.min}
            maxZoom={ZOOM.max}
            proOptions={{ hideAttribution: true }}
          >
            <ViewportPortal>
              <Edges drawing={drawing} />
            </ViewportPortal>
            <StickyHeads drawing={drawing} />
            <Controls drawing={drawing} />
            {drawing.nodes.length >= MAP_NODES_MIN && (
              <MiniMap
                pannable
                zoomable
                ariaLabel="Map of the graph"
                className={styles.map ?? ''}
                nodeClassName={({ id }) => mapClass(view, id) ?? ''}
              />
            )}
          </ReactFlow>
        </div>
      </div>
    </ViewContext>
  );
}

/** Smaller graphs are seen whole. */
const MAP_NODES_MIN = 40;

function mapClass({ faceOf, found, selected }: View, path: string): string | undefined {
  if (path === selected || found.has(path)) return styles.mapFound;
  const tone = faceOf(path)?.tone;
  return tone === 'danger' ? styles.mapDanger : tone === 'info' ? styles.mapInfo : undefined;
}

function flowNode(node: DrawnNode): BlockNode {
  const { path, x, y, width, height, block } = node;
  return {
    id: path,
    type: 'block',
    position: { x, y },
    ...{ width, height, zIndex: block.depth },
    // Edges are not attached to nodes; without this, every node would be measured first.
    handles: [],
    data: { node },
    // The buttons inside are the widgets, not the node.
    domAttributes: { 'aria-roledescription': undefined } as BlockNode['domAttributes'] & object,
  };
}

function focusOn(frame: HTMLElement | null, wanted: { current: string | null }): void {
  if (wanted.current === null) return;
  const selector = `[data-path="${CSS.escape(wanted.current)}"]`;
  const button = frame?.querySelector<HTMLElement>(selector);
  if (button == null) return;
  wanted.current = null;
  button.focus({ preventScroll: true });
}

/** Where an arrow key leads from a block, by the order and nesting of blocks. */
export function stepFrom(
  { nodes }: Drawing,
  node: DrawnNode,
  key: string,
): { readonly toggles: boolean; readonly path: string } | undefined {
  const at = nodes.indexOf(node);
  const to = (index: number) => {
    const other = nodes[index];
    return other === undefined ? undefined : { toggles: false, path: other.path };
  };
  switch (key) {
    case 'ArrowDown':
      return to(at + 1);
    case 'ArrowUp':
      return to(at - 1);
    case 'Home':
      return to(0);
    case 'End':
      return to(nodes.length - 1);
    case 'ArrowRight':
      if (!node.isGroup) return undefined;
      return node.isOpen ? to(at + 1) : { toggles: true, path: node.path };
    case 'ArrowLeft':
      if (node.isGroup && node.isOpen) return { toggles: true, path: node.path };
      return node.block.parent === null
        ? undefined
        : to(nodes.findIndex(({ path }) => path === node.block.parent));
    default:
      return undefined;
  }
}

// ---------------------------------------------------------------- viewport

function useBringIntoView(): (node: DrawnNode) => void {
  const { getViewport, setViewport } = useReactFlow();
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  return useCallback(
    (node) => {
      const { x, y, zoom } = getViewport();
      // Of a large group, the header has to be visible.
      const box = { ...node, height: Math.min(node.height, 120), width: Math.min(node.width, 400) };
      const middle = node.x + node.width / 2;
      const left = middle - box.width / 2;
      const dx = shift(left * zoom + x, box.width * zoom, width);
      const dy = shift(box.y * zoom + y, box.height * zoom, height);
      if (dx !== 0 || dy !== 0) void setViewport({ x: x + dx, y: y + dy, zoom });
    },
    [getViewport, setViewport, width, height],
  );
}

/** By how much an interval from `start` must move to lie within the viewport. */
function shift(start: number, length: number, room: number): number {
  if (room === 0) return 0;
  if (start < MARGIN) return MARGIN - start;
  return Math.min(0, room - MARGIN - (start + length));
}

/** Zoom controls, and the initial viewport. */
function Controls({ drawing }: { readonly drawing: Drawing }) {
  const { zoomIn, zoomOut, fitBounds, setViewport } = useReactFlow();
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  const { faceOf, selected } = useView();
  const isPlaced = useRef(false);
  useEffect(() => {
    if (isPlaced.current || width === 0 || height === 0) return;
    isPlaced.current = true;
    const isCurrent = (path: string) => CURRENT.has(faceOf(path)?.tone ?? 'ok');
    void setViewport(openingOf(drawing, { width, height }, isCurrent, selected));
  }, [drawing, width, height, faceOf, selected, setViewport]);
  const whole = { x: 0, y: 0, width: drawing.width, height: drawing.height };
  return (
    <Panel position="top-right" className={styles.controls ?? ''}>
      <IconButton label="Zoom in" icon={ZoomIn} onClick={() => zoomIn()} />
      <IconButton label="Zoom out" icon={ZoomOut} onClick={() => zoomOut()} />
      <IconButton
        label="Fit to view"
        icon={Maximize}
        onClick={() => fitBounds(whole, { padding: 0.05 })}
      />
    </Panel>
  );
}

/** What is running, waiting or failed, and what a comparison is about. */
const CURRENT: ReadonlySet<Tone> = new Set(['info', 'wait', 'warn', 'danger']);

// ---------------------------------------------------------------- edges

/** All edges are two SVG paths, however many there are: those that were taken, and the others. */
function Edges({ drawing }: { readonly drawing: Drawing }) {
  const { faceOf } = useView();
  const parts = { plain: '', faint: '', arrows: '', faintArrows: '' };
  for (const edge of drawing.edges) {
    const isFaint = edge.leadsTo.length > 0 && edge.leadsTo.every((path) => faceOf(path)?.isFaint);
    parts[isFaint ? 'faint' : 'plain'] += lineOf(edge);
    if (edge.kind === 'next') parts[isFaint ? 'faintArrows' : 'arrows'] += arrowOf(edge);
  }
  return (
    <svg className={styles.edges} width={drawing.width} height={drawing.height} aria-hidden="true">
      <path className={styles.faintLine} d={parts.faint} />
      <path className={styles.line} d={parts.plain} />
      <path className={styles.faintArrow} d={parts.faintArrows} />
      <path className={styles.arrow} d={parts.arrows} />
    </svg>
  );
}

const CORNER = 6;

/** With rounded corners. */
export function lineOf({ points }: DrawnEdge): string {
  const [[startX, startY] = [0, 0], ...rest] = points;
  let path = `M${startX} ${startY}`;
  for (const [i, [x, y]] of rest.entries()) {
    const next = rest[i + 1];
    if (next === undefined) {
      path += `L${x} ${y}`;
      continue;
    }
    const before = i === 0 ? [startX, startY] : rest[i - 1]!;
    const [inX, inY] = towards(x, y, before[0]!, before[1]!);
    const [outX, outY] = towards(x, y, next[0], next[1]);
    path += `L${inX} ${inY}Q${x} ${y} ${outX} ${outY}`;
  }
  return path;
}

function towards(x: number, y: number, toX: number, toY: number): readonly [number, number] {
  const length = Math.hypot(toX - x, toY - y);
  const share = Math.min(CORNER, length / 2) / (length || 1);
  return [x + (toX - x) * share, y + (toY - y) * share];
}

function arrowOf({ points }: DrawnEdge): string {
  const [x, y] = points.at(-1)!;
  return `M${x - 4} ${y - 7}L${x} ${y - 1}L${x + 4} ${y - 7}Z`;
}

// ---------------------------------------------------------------- blocks

function BlockShape({ data: { node } }: NodeProps<BlockNode>) {
  return node.isOpen ? <OpenGroup node={node} /> : <Card node={node} />;
}

function Card({ node }: { readonly node: DrawnNode }) {
  const { faceOf, selected, onSelect, onToggle, found, target } = useView();
  const { block, path, isGroup } = node;
  const face = faceOf(path);
  return (
    <button
      type="button"
      className={styles.card}
      data-path={path}
      data-tone={face?.tone ?? 'plain'}
      data-faint={face?.isFaint || undefined}
      data-closed={isGroup || undefined}
      data-found={foundOf(path, found, target)}
      data-heat={face?.heat === undefined ? undefined : ''}
      style={face?.heat === undefined ? undefined : ({ '--heat': face.heat } as CSSProperties)}
      aria-pressed={selected === path}
      aria-expanded={isGroup ? false : undefined}
      onClick={() => {
        onSelect(path);
        if (isGroup) onToggle(path);
      }}
    >
      <span className="hidden-text">{labelOf(block, face)}</span>
      <span className={styles.kind} title={lookName(block.look)} aria-hidden>
        <LookIcon look={block.look} />
      </span>
      <Name node={node} />
      {isGroup && <ChevronRight className={styles.chevron} size={16} aria-hidden />}
    </button>
  );
}

function foundOf(path: string, found: ReadonlySet<string>, target: string | null) {
  return path === target ? 'target' : found.has(path) ? '' : undefined;
}

/** The name and its details; the label of the button has all of it. */
function Name({ node: { block, path, isOpen } }: { readonly node: DrawnNode }) {
  const face = useView().faceOf(path);
  const inside = block.size > 0 && !isOpen ? countOf(block.size, 'block') : '';
  return (
    <span className={styles.words} title={labelOf(block, face)} aria-hidden>
      <span className={face?.isStruck ? styles.struck : styles.id}>
        {block.id}
        {block.isInjected && <span className={styles.tag}>injected</span>}
        {face?.mark && <span className={styles.mark}>{face.mark}</span>}
        {face !== undefined && <span className={styles.aside}>{block.detail}</span>}
      </span>
      {face === undefined ? (
        <span className={styles.detail}>{[inside, block.detail].filter(Boolean).join(' · ')}</span>
      ) : (
        <span className={styles.state}>
          <face.icon size={13} aria-hidden />
          {face.word}
          <span className={styles.note}>
            {[face.note, isOpen && face.line, inside].filter(Boolean).join(' · ')}
          </span>
        </span>
      )}
      {face?.line && !isOpen && <span className={styles.detail}>{face.line}</span>}
    </span>
  );
}

function OpenGroup({ node }: { readonly node: DrawnNode }) {
  const { faceOf, selected, onSelect, onToggle, found, target } = useView();
  const { block, path } = node;
  const face = faceOf(path);
  return (
    <div
      className={styles.group}
      data-found={foundOf(path, found, target)}
      data-tone={face?.tone ?? 'plain'}
      data-faint={face?.isFaint || undefined}
      data-look={block.look}
    >
      <div className={styles.head}>
        <button
          type="button"
          className={styles.title}
          data-path={path}
          aria-pressed={selected === path}
          aria-expanded
          onClick={() => onSelect(path)}
        >
          <span className="hidden-text">{labelOf(block, face)}</span>
          <span className={styles.kind} title={lookName(block.look)} aria-hidden>
            <LookIcon look={block.look} />
          </span>
          <Name node={node} />
        </button>
        <button
          type="button"
          className={styles.close}
          aria-label={`Close ${block.id}`}
          title="Close"
          onClick={() => onToggle(path)}
        >
          <ChevronDown size={16} aria-hidden />
        </button>
      </div>
      {node.slots.map((slot) => (
        <SlotFrame key={`${slot.x} ${slot.y}`} slot={slot} node={node} />
      ))}
    </div>
  );
}

function SlotFrame({ slot, node }: { readonly slot: DrawnSlot; readonly node: DrawnNode }) {
  const box = {
    ...{ left: slot.x - node.x, top: slot.y - node.y },
    ...{ width: slot.width, height: slot.height },
  };
  return (
    <div
      className={slot.isFramed ? styles.framed : styles.slot}
      data-fallback={slot.isFallback || undefined}
      style={box}
    >
      <span className={styles.slotLabel} title={slot.label}>
        {slot.label}
      </span>
      {slot.isEmpty && <span className={styles.nothing}>nothing</span>}
    </div>
  );
}
