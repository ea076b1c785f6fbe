import { useEffect, useRef } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

interface Props {
  label: string;
  /** Seconds since the epoch, then one array of values for each series. */
  data: [number[], ...number[][]];
  series: string[];
  bars?: boolean;
}

/** A plot in the page's colours. The same numbers stand in a table for who cannot see it. */
export function Plot({ label, data, series, bars = false }: Props) {
  const ref = useRef<HTMLDivElement>(null);
  const drawn = useRef<uPlot | null>(null);
  const names = series.join('\n');
  useEffect(() => {
    const place = ref.current;
    if (place === null) return;
    const probe = document.createElement('span');
    place.append(probe);
    const resolved = (name: string) => {
      probe.style.color = `var(${name})`;
      return getComputedStyle(probe).color;
    };
    const [accent, soft, line, warn] = [resolved('--accent'), resolved('--soft'), resolved('--line'), resolved('--warn')];
    probe.remove();
    const axis = { stroke: soft, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
    const paths = bars ? uPlot.paths.bars?.({ size: [0.7, 40] }) : undefined;
    const plot = new uPlot(
      {
        width: place.clientWidth, height: 200, cursor: { drag: { x: false, y: false } },
        scales: { y: { range: (_u, _min, max) => [0, Math.max(1, max * 1.1)] } },
        axes: [axis, { ...axis, size: 55 }],
        series: [{}, ...names.split('\n').map((name, i) => ({ label: name, stroke: i === 0 ? accent : warn, width: 2, ...(bars ? { fill: accent } : {}), ...(paths === undefined ? {} : { paths }), points: { show: false } }))],
      },
      [[], ...names.split('\n').map(() => [])],
      place,
    );
    drawn.current = plot;
    const watch = new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: 200 }));
    watch.observe(place);
    return () => {
      watch.disconnect();
      plot.destroy();
      drawn.current = null;
    };
  }, [names, bars]);
  useEffect(() => drawn.current?.setData(data), [data]);
  return <div className="plot" ref={ref} role="img" aria-label={label} />;
}
