package dev.fieldmesh.core.gps

import kotlin.math.abs
import kotlin.math.sqrt

/**
 * Smooths a receiver's speed for the eye and the ear; what is recorded stays
 * raw. A scalar Kalman filter whose process noise is a car's acceleration. A
 * jump that no car could make is passed over once, and believed when the next
 * fix confirms it. Not safe for several threads.
 */
class SpeedFilter {
    private var speed = 0.0
    private var variance = Double.NaN
    private var newestNs = 0L
    private var doubted = false

    /** Takes a fix and returns the speed, or null as long as there is none. */
    fun add(fix: Fix): Double? {
        val measured = fix.speedMps?.takeIf { it.isFinite() && it >= 0 } ?: return at(fix.bootNs)
        val noise = square((fix.speedErrMps ?: USUAL_ERROR_MPS).coerceIn(LEAST_ERROR_MPS, MOST_ERROR_MPS))
        if (at(fix.bootNs) == null) return restart(fix.bootNs, measured, noise)
        if (fix.bootNs <= newestNs) return speed // a fix that comes twice or late tells nothing new
        val seconds = (fix.bootNs - newestNs) / 1e9
        val predicted = variance + square(CAR_MPS2 * seconds)
        val surprise = measured - speed
        if (!doubted && abs(surprise) > BELIEF * sqrt(predicted + noise) + MOST_CAR_MPS2 * seconds) {
            doubted = true
            return speed
        }
        if (doubted &&
            abs(surprise) > MOST_CAR_MPS2 * seconds + MOST_ERROR_MPS
        ) {
            return restart(fix.bootNs, measured, noise)
        }
        doubted = false
        val gain = predicted / (predicted + noise)
        speed += gain * surprise
        variance = (1 - gain) * predicted
        newestNs = fix.bootNs
        return speed
    }

    /** The speed at a moment; null before the first fix and when the newest is too old to be shown as fresh. */
    fun at(bootNs: Long): Double? = if (variance.isNaN() || bootNs - newestNs > STALE_NS) null else speed

    private fun restart(bootNs: Long, measured: Double, noise: Double): Double {
        speed = measured
        variance = noise
        newestNs = bootNs
        doubted = false
        return speed
    }

    companion object {
        /** A speed older than this is shown as unknown. */
        const val STALE_NS = 1_500_000_000L

        private const val CAR_MPS2 = 2.5 // ordinary acceleration and braking
        private const val MOST_CAR_MPS2 = 10.0 // the tyres' limit on dry asphalt
        private const val USUAL_ERROR_MPS = 0.3
        private const val LEAST_ERROR_MPS = 0.05
        private const val MOST_ERROR_MPS = 3.0
        private const val BELIEF = 4.0 // standard deviations
    }
}

private fun square(x: Double) = x * x
