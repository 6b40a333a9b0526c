package dev.fieldmesh.core.app

import dev.fieldmesh.core.drive.metresFrom
import dev.fieldmesh.core.gps.Fix

/**
 * A place that was passed; throughput is what the receiver had there, when it was measured. [afterGap]: nothing is
 * known of the way to it.
 */
data class TrackPoint(
    val latDeg: Double,
    val lonDeg: Double,
    val throughputBps: Double? = null,
    val afterGap: Boolean = false,
)

/** What a note is that decides nothing. */
const val MARK = "mark"

/** Something that a person noted at a place. [saved]: it is a record on the node. */
data class Mark(val id: String, val text: String, val latDeg: Double?, val lonDeg: Double?, val saved: Boolean)

/** Where another node was [ageS] seconds ago; it is not known where it is. */
data class Peer(val node: String, val latDeg: Double, val lonDeg: Double, val ageS: Long)

/** The way so far, and what else is known to be where. */
data class TrackState(
    val points: List<TrackPoint> = emptyList(),
    val marks: List<Mark> = emptyList(),
    val peers: List<Peer> = emptyList(),
    val siteLatDeg: Double? = null,
    val siteLonDeg: Double? = null,
    /** The last of [points] is not where the car is known to be now. */
    val isOld: Boolean = false,
) {
    /** No place is known, neither of the car nor of another node. */
    val isEmpty: Boolean get() = points.isEmpty() && peers.isEmpty() && (siteLatDeg == null || siteLonDeg == null)

    /**
     * With one more place; [afterGap]: none was known for a while before it. Those nearer than a metre to the last are
     * left out, and the oldest go.
     */
    fun with(fix: Fix, throughputBps: Double?, afterGap: Boolean = false): TrackState {
        val lat = fix.latDeg ?: return this
        val lon = fix.lonDeg ?: return this
        if (!fix.hasPosition) return this
        val last = points.lastOrNull()
        if (last != null) {
            val step = metresFrom(last.latDeg, last.lonDeg, lat, lon)
            if (step.east * step.east + step.north * step.north < 1.0) return this
        }
        return copy(
            points =
            (if (points.size < MOST_POINTS) points else points.drop(points.size - MOST_POINTS + 1)) +
                TrackPoint(lat, lon, throughputBps, afterGap),
        )
    }

    private companion object {
        const val MOST_POINTS = 5000
    }
}
