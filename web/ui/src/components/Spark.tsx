// SPDX-License-Identifier: MIT
// Spark.tsx: a small line of what was held over time, beside a row. Its figures stand in the row: readers skip it.

interface SparkProps {
    values: readonly number[];
    width?: number;
    height?: number;
}

export function Spark({ values, width = 96, height = 18 }: SparkProps) {
    const most = values.reduce((max, value) => Math.max(max, value), 0);
    if (values.length < 2 || most === 0) return <svg class="spark" width={width} height={height} aria-hidden="true" />;
    const x = (index: number) => ((index / (values.length - 1)) * width).toFixed(1);
    const y = (value: number) => (height - 1 - (value / most) * (height - 2)).toFixed(1);
    const line = values.map((value, index) => `${x(index)},${y(value)}`).join(" ");
    return (
        <svg class="spark" width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
            <polygon points={`0,${height} ${line} ${width},${height}`} />
            <polyline points={line} />
        </svg>
    );
}
