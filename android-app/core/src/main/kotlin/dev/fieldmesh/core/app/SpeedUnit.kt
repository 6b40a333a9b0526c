package dev.fieldmesh.core.app

/** In what speeds are shown and spoken; what is sent and recorded is in m/s. */
enum class SpeedUnit(private val perMps: Double) {
    KMH(3.6),
    MPH(3600 / 1609.344), // the international mile
    MPS(1.0),
    ;

    fun of(mps: Double): Double = mps * perMps

    /** A speed in this unit as m/s, to the millimetre. */
    fun inMps(speed: Double): Double = Math.round(speed / perMps * 1000) / 1000.0

    /** A node's words with their speeds in this unit: "13.4 to 14.4 m/s" → "48.2 to 51.8 km/h". */
    fun inWords(text: String, symbol: String): String = SPEED.replace(text) { found ->
        val (first, between, second) = found.destructured
        val shown = if (second.isEmpty()) shown(first) else shown(first) + between + shown(second)
        "$shown $symbol"
    }

    private fun shown(mps: String) = if (this == MPS) mps else "%.1f".format(of(mps.toDouble()))

    private companion object {
        val SPEED = Regex("""(\d+(?:\.\d+)?)(?:( to | ± )(\d+(?:\.\d+)?))? m/s\b""")
    }
}
